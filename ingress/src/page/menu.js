// The menu of commands: opens with a slash at the beginning, and is used with the arrow keys or the mouse.
"use strict";

const menu = $("menu"), menuSays = $("menu-says");
let commands = null, asking = false, offered = [], chosen = 0;

// Asked for once, when the first slash is typed.
async function learnCommands() {
  if (commands || asking) return;
  asking = true;
  try {
    const answer = await fetch("/web/commands");
    if (answer.ok) commands = (await answer.json()).commands;
  } catch { /* Without it there is no menu; the commands work all the same. */ }
  asking = false;
  if (commands) offer();
}

const typedWord = () => /^\/(\S*)$/.exec(input.value)?.[1].toLowerCase();

function offer() {
  const word = typedWord();
  if (word === undefined) return closeMenu();
  if (!commands) return void learnCommands();
  offered = commands.filter(({ words }) => words.some((known) => known.startsWith(word)));
  chosen = 0;
  menu.replaceChildren(...offered.map(line));
  menu.hidden = offered.length === 0;
  menuSays.textContent = offered.length ? `${offered.length} commands: arrow keys choose, Tab takes` : "";
  mark();
}

function line({ words, args, help }, index) {
  const option = document.createElement("li"), name = document.createElement("b"), rest = document.createElement("span");
  option.id = `command-${index}`;
  option.setAttribute("role", "option");
  name.textContent = `/${words[0]}`;
  rest.textContent = help;
  option.append(name, args ? ` ${args} ` : " ", rest);
  // Before the input loses the focus.
  option.addEventListener("mousedown", (event) => { event.preventDefault(); fill(index); });
  option.addEventListener("mousemove", () => { if (chosen !== index) { chosen = index; mark(); } });
  return option;
}

function mark() {
  [...menu.children].forEach((option, index) => {
    option.setAttribute("aria-selected", String(index === chosen));
    if (index === chosen && !menu.hidden) option.scrollIntoView({ block: "nearest" });
  });
  if (menu.hidden) input.removeAttribute("aria-activedescendant");
  else input.setAttribute("aria-activedescendant", `command-${chosen}`);
}

function closeMenu() {
  menu.hidden = true;
  menuSays.textContent = "";
  mark();
}

function fill(index) {
  const { words, args } = offered[index];
  input.value = `/${words[0]}${args ? " " : ""}`;
  closeMenu();
  grow();
  input.focus();
}

// Before the page's own keys: while the menu is open, they are the menu's.
input.addEventListener("keydown", (event) => {
  if (menu.hidden || event.isComposing) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const whole = offered.some(({ words }) => words.includes(typedWord()));
  if (step) {
    chosen = (chosen + step + offered.length) % offered.length;
    mark();
  } else if (event.key === "Escape") {
    closeMenu();
  } else if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && !whole)) {
    fill(chosen);
  } else {
    if (event.key === "Enter") closeMenu(); // It is typed in full, and goes out.
    return;
  }
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);
input.addEventListener("input", offer);
input.addEventListener("blur", closeMenu);
$("composer").addEventListener("submit", closeMenu);
