// The chat page: messages, state, the event stream, and sending. One session per browser; everything that is shown is built
// from DOM nodes, never from markup. Beside it: markdown.js (what the agent says), own.js (what becomes of one's own messages),
// menu.js (commands).
"use strict";

const $ = (id) => document.getElementById(id);
const log = $("log"), input = $("input"), stateLine = $("state"), scroll = $("scroll");

// ---- Names ----------------------------------------------------------------------------------------------------------

const randomName = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

function rememberedSession() {
  try {
    const known = localStorage.getItem("talaria.session");
    if (/^[A-Za-z0-9_-]{1,128}$/.test(known || "")) return known;
    const fresh = randomName();
    localStorage.setItem("talaria.session", fresh);
    return fresh;
  } catch {
    return randomName(); // A browser that keeps nothing still has a session until the page is closed.
  }
}
const session = rememberedSession();

// ---- Messages --------------------------------------------------------------------------------------------------------

const byId = new Map();    // A message's id -> its element.
const byTurn = new Map();  // A turn -> the element of its answer.
const awaited = new Set(); // Turns of ours that have no end yet.
const encoder = new TextEncoder(), decoder = new TextDecoder();
const bytes = (text) => encoder.encode(text).length;

const atEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 120;
const toEnd = () => { scroll.scrollTop = scroll.scrollHeight; };

function add(kind, text, { id, turn } = {}) {
  const follow = atEnd() || kind === "user";
  const element = document.createElement("article"), body = document.createElement("div");
  element.className = "message";
  element.dataset.kind = kind;
  body.className = "body";
  element.append(body);
  element.shown = body;
  element.words = "";
  if (id) { element.dataset.id = id; byId.set(id, element); }
  if (turn) element.dataset.turn = turn;
  log.append(element);
  write(element, text);
  $("empty").hidden = true;
  if (follow) toEnd();
  return element;
}

// Writes at most once a frame, and less often when there is much to write.
function write(element, text) {
  element.words = text;
  if (element.due) return;
  element.due = true;
  const draw = () => {
    element.due = false;
    const follow = atEnd();
    render(element.shown, element.words);
    if (follow) toEnd();
  };
  if (!element.shown.firstChild) draw();
  else if (text.length > 20000) setTimeout(draw, 250);
  else if (document.hidden) setTimeout(draw, 50);
  else requestAnimationFrame(draw);
}

function answerOf(turn, kind) {
  let element = byTurn.get(turn);
  if (!element) {
    element = add(kind, "", { turn });
    byTurn.set(turn, element);
  }
  element.dataset.kind = kind;
  return element;
}

function shownUser(id, text, turn) {
  if (byId.has(id)) return;
  const same = turn && log.querySelector(`.message[data-kind="user"][data-turn="${CSS.escape(turn)}"]`);
  if (same) return; // The history has it.
  add("user", text, { id, turn }).classList.toggle("command", text.startsWith("/"));
  if (mayWait(text) && !byTurn.get(turn)?.ended) awaited.add(turn);
  showOwn();
}

function showDraft({ turn, attempt, offset, text }) {
  const known = byTurn.get(turn);
  if (known && known.ended) return;
  closeQuestions(turn);
  const element = answerOf(turn, "draft");
  if (element.attempt !== attempt) {
    element.attempt = attempt;
    element.length = 0;
    element.broken = false;
    element.words = "";
  }
  if (offset > element.length) {
    element.broken = true; // A piece was lost; the reply has it all.
  } else if (offset === element.length && !element.broken) {
    element.length += bytes(text);
    write(element, element.words + text);
  } else if (offset < element.length || offset === 0) {
    // The model was asked again: from here on it says something else.
    element.length = offset + bytes(text);
    element.broken = false;
    write(element, decoder.decode(encoder.encode(element.words).subarray(0, offset)) + text);
  }
  working();
}

function showReply({ id, turn, text, reply_to: about, beside }) {
  const element = turn ? answerOf(turn, "reply") : add("reply", "", { id });
  if (beside) showBeside(element, about);
  delete element.dataset.interrupted;
  element.ended = true;
  if (id) { element.dataset.id = id; byId.set(id, element); }
  // What was streamed may have more: the words before a tool was used.
  if (!element.words.trimEnd().endsWith(text.trimEnd()) || !text) write(element, text);
  endTurn(turn);
}

// An answer of a session that ran beside this one says what it answers.
function showBeside(element, about) {
  element.dataset.beside = "true";
  element.querySelector(".about")?.remove();
  const line = document.createElement("div");
  line.className = "about";
  line.textContent = byId.get(about)?.words || "beside the conversation";
  element.prepend(line);
}

function showClosed({ turn, text }) {
  if (turn) {
    const known = byTurn.get(turn);
    if (known && known.ended) return;
    if (known || text) {
      const element = answerOf(turn, "draft");
      if (text && text.length > element.words.length) write(element, text);
      element.ended = true;
      element.dataset.interrupted = "true";
    }
  }
  endTurn(turn);
}

function showQuestion({ id, turn, text, ask }) {
  if (byId.has(id)) return;
  const element = add("question", text, { id, turn });
  element.dataset.ask = ask || "";
  const choices = document.createElement("div");
  choices.className = "choices";
  for (const [decision, label] of [["approve", "Approve"], ["deny", "Deny"]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = decision;
    button.textContent = label;
    button.addEventListener("click", () => decide(element, ask, decision));
    choices.append(button);
  }
  element.append(choices);
  toEnd();
  working();
}

function settle(element, words) {
  const verdict = document.createElement("span");
  verdict.className = "verdict";
  verdict.textContent = words;
  element.dataset.settled = "true";
  element.querySelector(".choices")?.replaceChildren(verdict);
}

function closeQuestions(turn) {
  if (!turn) return;
  const open = `.message[data-kind="question"][data-turn="${CSS.escape(turn)}"]:not([data-settled])`;
  for (const element of log.querySelectorAll(open)) settle(element, "decided");
}

function endTurn(turn) {
  if (!turn) return;
  awaited.delete(turn);
  closeQuestions(turn);
  showOwn();
  working();
}

// ---- State -----------------------------------------------------------------------------------------------------------

let state = "offline", queued = 0, running = null, idleTimer = 0, recalled = false;

const isBusy = () => ["collecting", "starting", "running", "stopping"].includes(state);

function showState() {
  const words = { idle: "ready", collecting: "waiting for more…", starting: "starting…", running: "running", stopping: "stopping…", offline: "reconnecting…" };
  stateLine.dataset.state = state;
  stateLine.dataset.queued = queued;
  stateLine.textContent = words[state] + (queued ? ` · ${queued} queued` : "");
  const busy = isBusy();
  $("stop").hidden = !busy;
  $("stop").disabled = state === "stopping";
  $("queue").hidden = !busy;
  showOwn();
  working();
  clearTimeout(idleTimer);
  if (busy) recalled = false;
  // Nothing runs, and an answer is missing: it went to an earlier server process. The history has it; looking once is enough.
  const missing = () => state === "idle" && !recalled && unfinished();
  if (missing()) idleTimer = setTimeout(() => { if (missing()) { recalled = true; recall(); } }, 1500);
}

const liveDraft = () => log.querySelector('.message[data-kind="draft"]:not([data-interrupted])');
const unfinished = () => liveDraft() || awaited.size > 0;

function working() {
  const open = log.querySelector('.message[data-kind="question"]:not([data-settled])');
  const show = (state === "starting" || state === "running") && !liveDraft() && !open;
  if ($("working").hidden === !show) return;
  const follow = atEnd();
  $("working").hidden = !show;
  if (follow) toEnd();
}

// ---- The stream ------------------------------------------------------------------------------------------------------

let source, lastId = "", retry = 500, held = null;

const handlers = {
  state: (frame) => { state = frame.state; queued = frame.queued; running = frame.turn; showState(); },
  decided: (frame) => showDecided(frame),
  settled: (frame) => showSettled(frame),
  draft: showDraft,
  closed: showClosed,
  message: (frame) => {
    if (frame.kind === "user") shownUser(frame.id, frame.text, frame.turn);
    else if (frame.kind === "reply") showReply(frame);
    else if (frame.kind === "question") showQuestion(frame);
    else if (byId.has(frame.replaces)) { byId.set(frame.id, byId.get(frame.replaces)); write(byId.get(frame.replaces), frame.text); }
    else if (!byId.has(frame.id)) add(frame.kind, frame.text, { id: frame.id, turn: frame.turn });
  },
};

function listen() {
  source?.close();
  source = new EventSource(`/web/stream?session=${session}&last=${encodeURIComponent(lastId)}`);
  source.addEventListener("hello", (event) => {
    lastId = event.lastEventId || lastId;
    retry = 500;
    bar("");
    if (!JSON.parse(event.data).resumed) recall();
  });
  for (const [name, handle] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => {
      lastId = event.lastEventId || lastId;
      const frame = JSON.parse(event.data);
      // What comes while the history is being read waits for it; the state does not.
      if (held && name !== "state") held.push([handle, frame]);
      else handle(frame);
    });
  }
  source.onerror = () => {
    state = "offline";
    showState();
    if (source.readyState !== EventSource.CLOSED) return; // The browser comes back by itself.
    setTimeout(listen, retry);
    retry = Math.min(retry * 2, 10000);
    letIn();
  };
}

// An event stream does not say why it was refused; this does.
async function letIn() {
  try {
    const answer = await fetch(`/web/history?session=${session}`);
    if (answer.status === 401) bar("Access has ended. Open the address that the server printed when it started.");
  } catch { /* The server is away; the stream keeps trying. */ }
}

async function recall() {
  if (held) return;
  held = [];
  let messages = null;
  while (!messages) {
    try {
      const answer = await fetch(`/web/history?session=${session}`);
      if (answer.status === 401) { letIn(); held = null; return; }
      if (answer.ok) messages = (await answer.json()).messages;
    } catch { /* Tried again below. */ }
    if (!messages) await new Promise((done) => setTimeout(done, 1000));
  }
  // Words that the server does not have yet stay, and answers that are no part of this conversation.
  const mine = [...log.querySelectorAll(".message.pending, .message.failed, .message[data-beside]")];
  log.replaceChildren();
  byId.clear();
  byTurn.clear();
  awaited.clear();
  for (const { role, turn, text, partial } of messages) {
    if (role === "user") { add("user", text, { turn }); continue; }
    const element = answerOf(turn, partial ? "draft" : "reply");
    if (partial) element.dataset.interrupted = "true";
    write(element, text);
  }
  // The newest turn may still be running for an earlier server process, which cannot tell us how it ends.
  const newest = messages.at(-1);
  if (newest && (newest.role === "user" || (state !== "idle" && state !== "offline"))) awaited.add(newest.turn);
  for (const element of mine) {
    log.append(element);
    if (element.dataset.id) byId.set(element.dataset.id, element);
    if (element.dataset.beside) byTurn.set(element.dataset.turn, element);
  }
  $("empty").hidden = log.childElementCount > 0;
  const waiting = held;
  held = null;
  for (const [handle, frame] of waiting) handle(frame);
  toEnd();
  showState();
}

function bar(text) {
  $("notice-bar").textContent = text;
  $("notice-bar").hidden = !text;
}

// ---- Sending ---------------------------------------------------------------------------------------------------------

// Words are answered by a turn; most commands are not.
const mayWait = (text) => !text.startsWith("/") || /^\/(queue|q)\s/i.test(text);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Sends under one id until it is known to be stored: the server takes each id once.
async function post(body) {
  let trouble = "";
  for (let attempt = 0; attempt < 6; attempt += 1) {
    if (attempt) await pause(Math.min(500 * 2 ** attempt, 5000));
    try {
      const answer = await fetch("/web/messages", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ session, ...body }),
      });
      const result = await answer.json().catch(() => ({}));
      if (answer.ok) return result;
      trouble = result.error || `the server answered ${answer.status}`;
      if (answer.status < 500) break;
    } catch {
      trouble = "the server cannot be reached";
    }
  }
  throw new Error(trouble);
}

async function deliver(element, text) {
  element.classList.add("pending");
  element.classList.remove("failed");
  element.querySelector(".trouble")?.remove();
  try {
    const { turn } = await post({ id: element.dataset.id, text });
    element.dataset.turn = turn;
    if (mayWait(text) && !byTurn.get(turn)?.ended && !element.dataset.fate) awaited.add(turn);
  } catch (error) {
    element.classList.add("failed");
    const line = document.createElement("div"), again = document.createElement("button");
    line.className = "trouble";
    again.type = "button";
    again.textContent = "Send again";
    again.addEventListener("click", () => deliver(element, text));
    line.append(`Not sent: ${error.message}`, again);
    element.append(line);
  }
  element.classList.remove("pending");
  showOwn();
}

function say(text) {
  const element = add("user", text, { id: randomName() });
  element.classList.toggle("command", text.startsWith("/"));
  toEnd();
  return deliver(element, text);
}

async function decide(element, ask, decision) {
  for (const button of element.querySelectorAll(".choices button")) button.disabled = true;
  try {
    await post({ id: randomName(), ask, decision });
    settle(element, decision === "approve" ? "approved" : "denied");
  } catch (error) {
    for (const button of element.querySelectorAll(".choices button")) button.disabled = false;
    bar(`Not sent: ${error.message}`);
  }
}

function take(prefix) {
  const text = input.value.trim();
  if (!text) return;
  input.value = "";
  grow();
  say(prefix && !text.startsWith("/") ? prefix + text : text);
  input.focus();
}

function grow() {
  input.style.height = "auto";
  input.style.height = `${input.scrollHeight + 2}px`;
}

$("composer").addEventListener("submit", (event) => { event.preventDefault(); take(""); });
$("queue").addEventListener("click", () => take("/queue "));
$("stop").addEventListener("click", () => say("/stop"));
$("new").addEventListener("click", () => say("/new"));
input.addEventListener("input", grow);
input.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    take("");
  }
});

// When the other scripts are there too.
document.addEventListener("DOMContentLoaded", listen);
