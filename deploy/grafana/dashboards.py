#!/usr/bin/env python3
"""Writes dashboards/*.json. `dashboards.py` writes them, `dashboards.py --check` says whether they are what this file makes.

A board is a list of rows, a row a title and panels, a panel what kind(title, unit, description, queries) makes of it.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "dashboards"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WHO = (
    "Metrics hold no ids, so they say what hangs and since when, not who. To name the sessions: `/agents` in a chat of an "
    "administrator lists what runs and what it is busy with; `/status` in a chat says it of that chat; `talaria explain <message>` "
    "tells what became of a message, with each warning, timeout and eviction and what the turn was stuck on; `talaria status` lists "
    "the processes and what they run."
)


def panel(kind, title, unit, description, queries, width=8, options=None, defaults=None):
    targets = [
        {"refId": chr(65 + at), "expr": expr, "legendFormat": legend, "datasource": DATASOURCE}
        for at, (expr, legend) in enumerate(queries)
    ]
    for target in targets:
        if kind in ("stat", "bargauge"):
            target["instant"] = True
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0, **(defaults or {})}, "overrides": []},
        "options": options or {},
        "gridPos": {"w": width, "h": 8 if kind != "stat" else 4},
    }


def lines(title, unit, description, *queries, width=8, stacked=False):
    custom = {"fillOpacity": 10, "stacking": {"mode": "normal" if stacked else "none"}}
    options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return panel("timeseries", title, unit, description, queries, width, options, {"custom": custom})


def stat(title, unit, description, expr, bad=None, width=4):
    """A number; red from `bad` on."""
    steps = [{"color": "green", "value": None}] + ([{"color": "red", "value": bad}] if bad is not None else [])
    defaults = {"thresholds": {"mode": "absolute", "steps": steps}}
    options = {"colorMode": "background" if bad is not None else "value", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return panel("stat", title, unit, description, [(expr, "")], width, options, defaults)


def bars(title, unit, description, expr, legend, width=12):
    options = {"orientation": "horizontal", "displayMode": "gradient", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return panel("bargauge", title, unit, description, [(expr, legend)], width, options)


def text(title, content, width=24, height=4):
    return {
        "type": "text",
        "title": title,
        "options": {"mode": "markdown", "content": content},
        "gridPos": {"w": width, "h": height},
    }


def rate(metric, by="", where=""):
    by = f" by ({by})" if by else ""
    return f"sum{by} (rate({metric}{{{where}}}[$__rate_interval]))".replace("{}", "")


def quantiles(title, description, metric, where="", by="", width=8, which=(0.5, 0.99), unit="s"):
    group = f"le, {by}" if by else "le"
    queries = [
        (
            f"histogram_quantile({q}, {rate(metric + '_bucket', group, where)})",
            (f"{{{{{by}}}}} " if by else "") + f"p{q * 100:g}",
        )
        for q in which
    ]
    return lines(title, unit, description, *queries, width=width)


S, W, I, B = "talaria_scheduler_", "talaria_worker_", "talaria_ingress_", "talaria_broker_"

OVERVIEW = [
    ("Now", [
        stat("Messages lost", "short", "Records that cannot be read or published, in the last hour. Must be 0.",
             f"sum(increase({S}effects_failed_total[1h])) + sum(increase({S}poison_total[1h])) + sum(increase({W}poison_total[1h]))", 1),
        stat("Turns running", "short", "Turns that workers run at the moment.", f"sum({W}turns_running)"),
        stat("Slots in use", "percentunit", "Running turns against the capacity of all workers.",
             f"sum({W}turns_running) / sum({W}capacity)", 0.95),
        stat("Stuck", "short", "Turns that have not advanced for 15 minutes or more and do not wait for a person.",
             f'sum({S}turns_running{{idle=~"15m|30m",state!="waiting_for_human"}})', 1),
        stat("Partitions without owner", "short", "Sessions in these stand still.",
             f"max({S}partitions) - sum({S}partitions_owned)", 1),
        stat("Alerts firing", "short", "Alerts that fire at the moment; each has a page in deploy/docs/runbooks.",
             'count(ALERTS{alertname=~"Talaria.*",alertstate="firing"}) or vector(0)', 1),
    ]),
    ("Service levels", [
        lines("Messages turned away", "percentunit", "Messages that could not be stored within 5 s; the goal is below 0.1 %.",
              ("talaria:accept_errors:ratio_rate5m", "5 min"), ("talaria:accept_errors:ratio_rate1h", "1 h")),
        lines("Turns that waited for a worker", "percentunit", "Turns that waited more than 1 s for a worker; the goal is below 1 %.",
              ("talaria:dispatch_slow:ratio_rate5m", "5 min"), ("talaria:dispatch_slow:ratio_rate1h", "1 h")),
        lines("Slow interrupts", "percentunit", "Interrupts that took more than 8 s until the turn had ended; the goal is below 1 %.",
              ("talaria:interrupt_slow:ratio_rate5m", "5 min"), ("talaria:interrupt_slow:ratio_rate1h", "1 h")),
        lines("Dead deliveries", "percentunit", "Deliveries that were given up; the goal is below 0.1 %.",
              ("talaria:deliveries_dead:ratio_rate5m", "5 min"), ("talaria:deliveries_dead:ratio_rate1h", "1 h")),
        quantiles("Time to first token", "Model calls, from the request to the first word.", W + "time_to_first_token_seconds"),
        quantiles("From message to worker", "From a message's acceptance until a worker has its turn; waiting behind a running turn counts.",
                  S + "queue_wait_seconds"),
    ]),
    ("Traffic", [
        lines("Messages in", "reqps", "Messages at the door, by what became of them. Duplicates are refused, which is as it should be.",
              (rate(I + "messages_total", "result"), "{{result}}")),
        lines("Messages settled", "reqps", "Each message reaches exactly one end.", (rate(S + "messages_settled_total", "fate"), "{{fate}}")),
        lines("Turns ended", "reqps", "Turns, by how they ended.", (rate(S + "turns_ended_total", "end"), "{{end}}")),
        lines("Tokens", "short", "Tokens a second, as far as providers say: with the provider's prices this is the cost.",
              (rate(W + "tokens_total", "direction"), "{{direction}}")),
        lines("Versions", "short", "Processes by version: two only during an upgrade.",
              ("count by (version) (talaria_build_info)", "{{version}}")),
        lines("Memory", "bytes", "Resident memory of each process.", ('process_resident_memory_bytes{job=~".*talaria.*"}', "{{job}} {{instance}}")),
    ]),
]

TIMEOUTS = [
    ("Who is stuck", [
        text("Who", WHO),
        bars("Running turns that have not advanced for a minute or more", "short",
             "On what, and since when: what they are busy with, and for how long at least. Waiting for a person is not being stuck.",
             f'sum by (state, idle) ({S}turns_running{{idle!~"0s|10s"}}) > 0 or sum({S}turns_running{{idle!~"0s|10s"}})', "{{state}} ≥ {{idle}}"),
        lines("Turns by what they are busy with", "short", "All turns that workers run.",
              (f"sum by (state) ({S}turns_running)", "{{state}}"), width=12, stacked=True),
        lines("Turns by how long they have not advanced", "short", "At least so long, and less than the next. A tool with a deadline of its own may take it.",
              (f'sum by (idle) ({S}turns_running{{state!="waiting_for_human"}})', "≥ {{idle}}"), width=12, stacked=True),
        lines("Longest time without progress", "s", "Of all running turns, by what they do, as their workers see it.",
              (f"max by (state) ({W}turns_idle_seconds_max)", "{{state}}")),
        lines("Turns by what their workers say", "short", "All running turns, as workers see them.", (f"sum by (state) ({W}turns_by_state)", "{{state}}"), stacked=True),
        lines("Sessions by phase", "short", "Starting: ordered, no worker yet. Stopping: told to stop, not confirmed yet.",
              (f"sum by (phase) ({S}sessions)", "{{phase}}"), stacked=True),
    ]),
    ("What was warned, timed out, evicted, and why", [
        lines("Long turns", "short", "In five minutes: turns whose people were told that they still work, that they make no progress, or that they timed out.",
              (f"sum by (stage) (increase({S}slow_turns_total[5m]))", "{{stage}}"), width=12),
        lines("Attempts given to another worker", "short",
              "In five minutes. Evicted: its worker is gone. Handed back: its worker stops, which costs nothing.",
              (f"sum by (cause) (increase({S}retries_total[5m]))", "{{cause}}"), width=12),
        lines("Turns given up", "short", "In five minutes. Parked: too many attempts died. Released: the worker did not confirm a stop in time.",
              (f'sum by (end) (increase({S}turns_ended_total{{end=~"parked|released"}}[5m]))', "{{end}}")),
        quantiles("Attempts a turn", "How many attempts ended turns took.", S + "turn_attempts", unit="short"),
        lines("Fenced off", "short", "In five minutes: effects that workers held back because the turn was no longer theirs, and claims refused.",
              (f"sum(increase({W}fence_refusals_total[5m]))", "effects held back"),
              (f"sum(increase({W}claims_denied_total[5m]))", "claims refused"),
              (f'sum(increase({S}claims_total{{answer="denied"}}[5m]))', "claims denied by schedulers")),
    ]),
    ("Interrupts: sent, seen, stopped", [
        quantiles("Sent", "From the message's acceptance until its turn's worker was told.", S + "interrupt_seconds", 'step="sent"'),
        quantiles("Seen", "From the message's acceptance until the worker knew; what was in flight is cut off at that moment.", W + "interrupt_seen_seconds"),
        quantiles("Stopped", "From the message's acceptance until the turn had ended and the next could begin.", S + "interrupt_seconds", 'step="stopped"'),
    ]),
    ("Heartbeats and clocks", [
        lines("Heartbeats", "reqps", "By whether the partition's scheduler answered.", (rate(W + "heartbeats_total", "result"), "{{result}}")),
        lines("Late heartbeats", "reqps", "More than two intervals after the one before.", (rate(S + "heartbeats_late_total"), "late")),
        quantiles("Lateness of timers", "How late a scheduler noticed a deadline: warnings and evictions are so much late.", S + "loop_lag_seconds"),
    ]),
    ("Scheduled jobs", [
        lines("Due times of jobs", "short",
              "What became of the due times of scheduled jobs: run, merged into a later run, or skipped because the run before was in progress.",
              (f"sum(increase({S}jobs_fired_total[5m]))", "run"),
              (f"sum(increase({S}jobs_missed_total[5m]))", "merged into a later run"),
              (f"sum(increase({S}jobs_skipped_total[5m]))", "skipped"),
              (f"sum({S}jobs)", "jobs that may still run")),
        lines("Runs of jobs by their end", "short", "How runs of scheduled jobs ended: failed, timed_out and lost want a look.",
              (f"sum by (end) (increase({S}jobs_ended_total[5m]))", "{{end}}")),
        quantiles("Lateness of jobs", "How long after its due time a run of a scheduled job began.", S + "jobs_late_seconds"),
    ]),
]

SESSIONS = [
    ("Queues", [
        lines("Messages that wait in sessions", "short", "Behind a running turn, first in first out.", (f"sum({S}queued_messages)", "queued")),
        quantiles("From message to worker", "From acceptance until a worker has the turn.", S + "queue_wait_seconds"),
        quantiles("From order to worker", "Turns that could begin: how long until a worker had them.", S + "dispatch_seconds"),
    ]),
    ("Decisions", [
        lines("Decisions", "reqps", "What was decided on each message.", (rate(S + "decisions_total", "decision"), "{{decision}}")),
        lines("Why messages wait or are refused", "reqps", "Queued and refused messages, by reason.",
              (rate(S + "decisions_total", "decision, reason", 'reason!="none"'), "{{decision}}: {{reason}}")),
        lines("What follows", "reqps", "Effects published: turn orders, and what is to be delivered.", (rate(S + "effects_total", "kind"), "{{kind}}")),
    ]),
    ("The loop", [
        lines("Inputs applied", "reqps", "Inputs that sessions were given, by kind.", (rate(S + "inputs_total", "kind"), "{{kind}}")),
        lines("Log lag", "short", "Inputs in the log that are not applied yet.", (f"sum({S}log_lag)", "lag")),
        quantiles("Rounds", "Deciding, writing the leases and sending what follows, for a batch of inputs.", S + "round_seconds"),
        lines("Batch", "short", "Inputs a round, on average.",
              (f"{rate(S + 'batch_inputs_sum')} / {rate(S + 'batch_inputs_count')}", "inputs")),
        lines("Lease writes", "reqps", "Refused: another owner wrote. Unknown: no acknowledgement; written again.", (rate(S + "lease_writes_total", "result"), "{{result}}")),
        lines("Records that cannot be read", "short", "In five minutes. Must be 0; each is kept for a person.",
              (f"sum(increase({S}poison_total[5m]))", "scheduler"), (f"sum(increase({W}poison_total[5m]))", "worker"),
              (f"sum(increase({S}effects_failed_total[5m]))", "not publishable")),
    ]),
    ("Sessions aside", [
        lines("Sessions whose lease cannot be read", "short", "What comes for them waits in the log until the lease is mended or deleted.",
              (f"sum({S}sessions_aside)", "sessions"), width=12),
        lines("Inputs set aside", "short", "In five minutes; each is applied when its session's lease can be read again.",
              (f"sum(increase({S}inputs_aside_total[5m]))", "inputs"), width=12),
    ]),
    ("Ownership", [
        lines("Partitions owned", "short", "By scheduler; together they are all.", (f"{S}partitions_owned", "{{instance}}"), (f"max({S}partitions)", "all"), width=8),
        lines("Partitions released", "short", "In five minutes, by why.", (f"sum by (cause) (increase({S}partitions_released_total[5m]))", "{{cause}}")),
        quantiles("Takeover", "From beginning to take a partition over until its inputs are applied.", S + "takeover_seconds"),
    ]),
]

WORKERS = [
    ("Turns", [
        lines("Slots", "short", "Turns that run, and how many could.", (f"sum({W}turns_running)", "running"), (f"sum({W}capacity)", "capacity")),
        lines("Turns by worker", "short", "Which worker runs how many; draining workers take no more.", (f"{W}turns_running", "{{instance}}"), (f"sum({W}draining)", "draining")),
        lines("Turns ended", "reqps", "By how; handed back when a worker stops.", (rate(W + "turns_total", "outcome"), "{{outcome}}")),
        quantiles("Turn duration", "From the granted claim to the report.", W + "turn_seconds", 'outcome="completed"'),
        lines("Conversations opened", "reqps", "By whether they were in memory.", (rate(W + "conversation_loads_total", "from"), "{{from}}")),
        lines("Compressions", "reqps", "Conversations made shorter, by who wrote the summary.", (rate(W + "compressions_total", "by"), "{{by}}")),
    ]),
    ("Models", [
        quantiles("Time to first token", "From the request to the first word.", W + "time_to_first_token_seconds"),
        quantiles("Model calls", "From the request to the last word.", W + "model_call_seconds"),
        lines("Model errors", "reqps", "Failed calls by reason, and calls that a fallback took over.",
              (rate(W + "model_errors_total", "reason"), "{{reason}}"), (rate(W + "fallbacks_total"), "fallbacks")),
        lines("Tokens", "short", "A second, as far as providers say.", (rate(W + "tokens_total", "direction"), "{{direction}}")),
        lines("Tokens a turn", "short", "Average over turns that ended: with the provider's prices, the cost of a turn.",
              (f"{rate(W + 'tokens_total', 'direction')} / scalar({rate(W + 'turns_total')})", "{{direction}}")),
        lines("Approvals asked", "reqps", "Questions to people before a dangerous tool runs.", (rate(W + "asks_total"), "asks")),
    ]),
    ("Tools and processes", [
        lines("Tool calls", "reqps", "By tool; those of MCP servers count together.", (rate(W + "tool_seconds_count", "tool") + " > 0 or " + rate(W + "tool_seconds_count"), "{{tool}}")),
        quantiles("Slow tools", "How long calls take, 99th percentile by tool.", W + "tool_seconds", by="tool", which=(0.99,)),
        lines("Hooks", "reqps", "Events passed to hooks, by how it went.", (rate("talaria_hook_calls_total", "outcome"), "{{outcome}}")),
        lines("Sandbox", "short", "How far terminal commands are kept in by Landlock, in workers.", (f"sum by (landlock) ({W}sandbox_info)", "{{landlock}}")),
        lines("Memory", "bytes", "Resident memory of each process.", ('process_resident_memory_bytes{job=~".*talaria.*"}', "{{job}} {{instance}}")),
        lines("Processor", "percentunit", "Cores that each process uses.", ('rate(process_cpu_seconds_total{job=~".*talaria.*"}[$__rate_interval])', "{{job}} {{instance}}")),
    ]),
]

PLATFORMS = [
    ("In", [
        lines("Messages by platform", "reqps", "All that came to the door.", (rate(I + "messages_total", "platform"), "{{platform}}")),
        lines("Turned down", "reqps", "Duplicates, senders who may not, what cannot be understood, what could not be stored.",
              (rate(I + "messages_total", "platform, result", 'result!="accepted"'), "{{platform}}: {{result}}")),
        lines("Refused people", "reqps", "People who may not, by why, and unknown ones who asked to be let in, by what they were told.",
              (rate(I + "refused_total", "reason"), "{{reason}}"), (rate(I + "pairings_total", "result"), "pairing: {{result}}")),
        lines("Not for the agent", "reqps", "Messages of groups that do not address it, of other channels, of bots; and what could not be read and was set aside.",
              (rate(I + "unheeded_total", "reason"), "{{reason}}"), (rate(I + "poison_total"), "unreadable")),
        quantiles("Until durable", "From a message's arrival to its durable acknowledgement.", I + "accept_seconds"),
    ]),
    ("Out", [
        lines("Produced and delivered", "reqps", "Replies, notices, acknowledgements and questions that schedulers produced, and deliveries that ended.",
              (rate(S + "effects_total", "", 'kind=~"reply|notice|ack|question|closed"'), "produced"), (rate(I + "deliveries_total", "result"), "{{result}}")),
        lines("Deliveries by platform", "reqps", "By how they ended; dead ones were given up.", (rate(I + "deliveries_total", "platform, result"), "{{platform}}: {{result}}")),
        quantiles("Delivery", "From when something was stored in OUTBOX until the platform had it, 99th percentile.", I + "delivery_seconds", by="platform", which=(0.99,)),
        lines("Tried again", "reqps", "The platform asked to wait (rate limits), or it failed.", (rate(I + "delivery_retries_total", "platform, cause"), "{{platform}}: {{cause}}")),
        lines("Deliveries that wait", "short", "In OUTBOX: not taken yet, and in hand.", (f'max by (state) ({B}waiting{{stream="OUTBOX"}})', "{{state}}")),
        lines("Drafts and streams", "short", "Pieces of streamed text a second, and event streams that are open.",
              (rate(I + "drafts_total", "platform"), "{{platform}} drafts/s"), (f"sum({I}streams_open)", "streams open")),
    ]),
    ("Adapters", [
        lines("Accounts", "short", "How many are in which state; retrying and paused ones do not work.", (f"sum by (platform, state) ({I}account) > 0", "{{platform}} {{state}}"), width=24),
    ]),
]

NATS = [
    ("Connections", [
        lines("Connected", "short", "1: this process has a connection to the broker.", (f"{B}connected", "{{job}} {{instance}}"), width=12),
        lines("Reconnections", "short", "Connections made in five minutes: each after one was lost.", (f"increase({B}connects_total[5m])", "{{job}} {{instance}}"), width=12),
    ]),
    ("Streams", [
        lines("Bytes", "bytes", "What each stream holds, as schedulers see it.", (f"max by (stream) ({B}stream_bytes)", "{{stream}}"), width=12, stacked=True),
        lines("Messages", "short", "How many messages each stream holds.", (f"max by (stream) ({B}stream_messages)", "{{stream}}"), width=12),
        lines("Copies behind or away", "short", "Should be 0: the next failure may stop the stream.", (f'max by (stream) ({B}stream_copies{{state="behind"}})', "{{stream}}")),
        lines("Turn orders that wait", "short", "Pending: no worker has taken them. This is what workers are scaled by.", (f'max by (state) ({B}waiting{{stream="TURNS"}})', "{{state}}")),
        lines("Store", "bytes", "What the account uses, and its limit (0: none is set, so nobody can say how full it is).",
              (f"max({B}store_used_bytes)", "used"), (f"max({B}store_limit_bytes)", "limit")),
    ]),
    ("Writes", [
        quantiles("Durable acknowledgement", "From a message's arrival to its acknowledgement by the broker.", I + "accept_seconds", width=12),
        lines("Lease writes", "reqps", "By what the broker said.", (rate(S + "lease_writes_total", "result"), "{{result}}"), width=12),
    ]),
]

BOARDS = {
    "overview": ("Talaria: overview", OVERVIEW),
    "timeouts": ("Talaria: timeouts and liveness", TIMEOUTS),
    "sessions": ("Talaria: sessions and queues", SESSIONS),
    "workers": ("Talaria: workers", WORKERS),
    "platforms": ("Talaria: platforms and delivery", PLATFORMS),
    "nats": ("Talaria: NATS", NATS),
}


def place(rows):
    """Gives every panel an id and a place: from left to right, a new line when the line is full."""
    placed, y = [], 0
    for title, panels in rows:
        row = {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}}
        placed.append(row)
        x, y, height = 0, y + 1, 0
        for one in panels:
            if x + one["gridPos"]["w"] > 24:
                x, y, height = 0, y + height, 0
            one["gridPos"].update(x=x, y=y)
            x, height = x + one["gridPos"]["w"], max(height, one["gridPos"]["h"])
            placed.append(one)
        y += height
    for number, one in enumerate(placed, 1):
        one["id"] = number
    return placed


def board(name, title, rows):
    links = [{"type": "dashboards", "title": "Talaria", "tags": ["talaria"], "asDropdown": True, "keepTime": True, "includeVars": True}]
    datasource = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    return {
        "uid": f"talaria-{name}",
        "title": title,
        "tags": ["talaria"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "links": links,
        "templating": {"list": [datasource]},
        "annotations": {"list": [{
            "name": "Alerts", "datasource": DATASOURCE, "enable": True, "iconColor": "red",
            "expr": 'ALERTS{alertname=~"Talaria.*",alertstate="firing"}', "titleFormat": "{{alertname}}",
        }]},
        "panels": place(rows),
    }


def main():
    old = []
    for name, (title, rows) in BOARDS.items():
        path = FOLDER / f"{name}.json"
        made = json.dumps(board(name, title, rows), indent=1, ensure_ascii=False) + "\n"
        if "--check" not in sys.argv:
            path.write_text(made)
        elif not path.exists() or path.read_text() != made:
            old.append(path.name)
    if old:
        sys.exit(f"old: {', '.join(old)}; run deploy/grafana/dashboards.py")


if __name__ == "__main__":
    main()
