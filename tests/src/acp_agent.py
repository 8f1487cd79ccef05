"""An agent built with the public Python kit of the Agent Client Protocol: echoes, asks for permission, waits to be cancelled."""

import asyncio
import uuid

from acp import Agent, InitializeResponse, NewSessionResponse, PromptResponse, run_agent
from acp.helpers import start_tool_call, update_agent_message_text
from acp.schema import PermissionOption, ToolCallUpdate


class Echo(Agent):
    def on_connect(self, conn):
        self.client = conn
        self.cancelled = asyncio.Event()

    async def initialize(self, protocol_version, **kwargs):
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, **kwargs):
        return NewSessionResponse(session_id=uuid.uuid4().hex)

    async def cancel(self, session_id, **kwargs):
        self.cancelled.set()

    async def prompt(self, session_id, prompt, **kwargs):
        async def say(text):
            await self.client.session_update(session_id, update_agent_message_text(text))

        text = prompt[0].text
        await say("Hello. ")
        if "wait" in text:
            await self.cancelled.wait()
            return PromptResponse(stop_reason="cancelled")
        if "dare" in text:
            await self.client.session_update(session_id, start_tool_call("t1", "delete it all"))
            answer = await self.client.request_permission(
                session_id=session_id,
                tool_call=ToolCallUpdate(tool_call_id="t1", title="delete it all"),
                options=[
                    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
                    PermissionOption(option_id="no", name="No", kind="reject_once"),
                ],
            )
            await say(f"You chose {answer.outcome.option_id}.")
        else:
            await say(f"You said {text}.")
        return PromptResponse(stop_reason="end_turn")


asyncio.run(run_agent(Echo()))
