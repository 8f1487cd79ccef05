// One's own messages that wait: they can be changed and taken back until their turn begins, and say what became of them.
"use strict";

// Why a message has no answer of its own, in words; the others are told by a notice or by the answer itself.
const FATES = {
  merged: "answered together with the message before it",
  steered: "taken as a hint",
  cleared: "cleared",
  withdrawn: "taken back",
};

// Whether its turn has not begun, as far as is known here. The server decides.
function waits(element) {
  const { turn, id, fate, begun } = element.dataset;
  return Boolean(
    isBusy() && id && turn && awaited.has(turn) && turn !== running && !byTurn.has(turn) && !fate && !begun
      && !element.matches(".pending, .failed") && mayWait(element.words),
  );
}

function button(className, label, text, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = className;
  made.textContent = text;
  made.title = label;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

// Shows the controls where they can still do something, and nowhere else.
function showOwn() {
  for (const element of log.querySelectorAll('.message[data-kind="user"]')) {
    const controls = element.querySelector(".own"), may = waits(element);
    if (!may && element.querySelector(".editor")) continue; // Whoever is writing is told when they send it.
    if (may && !controls) {
      const line = document.createElement("div");
      line.className = "own";
      line.append(
        button("edit", "Change this message", "Edit", () => beginEdit(element)),
        button("withdraw", "Take this message back", "✕", () => withdraw(element)),
      );
      element.append(line);
    } else if (!may) {
      controls?.remove();
    }
  }
}

function beginEdit(element) {
  if (element.querySelector(".editor")) return;
  const editor = document.createElement("div"), words = document.createElement("textarea");
  editor.className = "editor";
  words.value = element.words;
  words.rows = Math.min(8, element.words.split("\n").length + 1);
  words.setAttribute("aria-label", "What the message says");
  const end = () => {
    editor.remove();
    element.shown.hidden = false;
    showOwn();
    input.focus();
  };
  const save = () => {
    const text = words.value.trim();
    end();
    if (text && text !== element.words) change(element, text);
  };
  words.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); save(); }
  });
  editor.append(words, button("save", "Save the change", "Save", save), button("cancel", "Leave it as it is", "Cancel", end));
  element.shown.hidden = true;
  element.querySelector(".own")?.remove();
  element.append(editor);
  words.focus();
}

async function change(element, text) {
  element.earlier = element.words;
  write(element, text);
  element.classList.add("changing");
  try {
    await post({ id: randomName(), edits: element.dataset.id, text });
  } catch (error) {
    undo(element);
    bar(`Not changed: ${error.message}`);
  }
}

async function withdraw(element) {
  element.classList.add("changing");
  try {
    await post({ id: randomName(), deletes: element.dataset.id });
  } catch (error) {
    element.classList.remove("changing");
    bar(`Not taken back: ${error.message}`);
  }
}

function undo(element) {
  element.classList.remove("changing");
  if (element.earlier === undefined) return;
  write(element, element.earlier);
  delete element.earlier;
}

// The server has decided on a message, or on a change of it.
function showDecided({ id, turn, what, text }) {
  const element = byId.get(id);
  if (!element || element.dataset.kind !== "user") return;
  if (what === "too_late" || what === "refused") {
    if (what === "too_late" && element.classList.contains("changing")) outcome(element, "too late to change: its turn had begun");
    if (what === "too_late") element.dataset.begun = "true";
    undo(element);
  } else {
    if (text) write(element, text);
    // A change that interrupts its own turn leads the next one; a hint has gone where it cannot be fetched back.
    if (text && what === "interrupted") { element.dataset.turn = turn; awaited.add(turn); }
    if (what === "steered") element.dataset.begun = "true";
    delete element.earlier;
    element.classList.remove("changing");
  }
  showOwn();
}

// A message has reached its end without an answer of its own.
function showSettled({ id, fate }) {
  const element = byId.get(id);
  if (!element || element.dataset.kind !== "user") return;
  element.dataset.fate = fate;
  element.classList.remove("changing");
  if (FATES[fate]) outcome(element, FATES[fate]);
  endTurn(element.dataset.turn);
  showState();
}

function outcome(element, words) {
  element.querySelector(".outcome")?.remove();
  const line = document.createElement("div");
  line.className = "outcome";
  line.textContent = words;
  element.append(line);
}
