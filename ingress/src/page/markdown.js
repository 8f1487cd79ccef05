// What the agent says, as DOM nodes: code, bold and links; the rest stays as it was written.
"use strict";

const INLINE = /(`+)([\s\S]+?)\1(?!`)|\*\*([^\s*][\s\S]*?)\*\*|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+|mailto:[^\s)]+)\)|(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?])/g;

function link(href, label) {
  const a = document.createElement("a");
  a.href = href;
  a.textContent = label;
  a.target = "_blank";
  a.rel = "noopener noreferrer";
  return a;
}

function inline(into, text) {
  let from = 0;
  for (const m of text.matchAll(INLINE)) {
    into.append(text.slice(from, m.index));
    from = m.index + m[0].length;
    if (m[1]) {
      const code = document.createElement("code");
      code.textContent = m[2];
      into.append(code);
    } else if (m[3] !== undefined) {
      const bold = document.createElement("strong");
      inline(bold, m[3]);
      into.append(bold);
    } else {
      into.append(m[5] ? link(m[5], m[4]) : link(m[6], m[6]));
    }
  }
  into.append(text.slice(from));
}

function codeBlock(text, language) {
  const pre = document.createElement("pre"), code = document.createElement("code"), copy = document.createElement("button");
  code.textContent = text;
  if (language) code.dataset.language = language;
  copy.type = "button";
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select it";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  pre.append(code, copy);
  return pre;
}

function render(into, text) {
  const nodes = [];
  const paragraphs = (chunk) => {
    for (const part of chunk.split(/\n{2,}/)) {
      const words = part.replace(/^\n+|\n+$/g, "");
      if (!words.trim()) continue;
      const p = document.createElement("p"), heading = /^#{1,6} +(.+)$/.exec(words);
      if (heading) {
        const strong = document.createElement("strong");
        inline(strong, heading[1]);
        p.append(strong);
      } else {
        inline(p, words);
      }
      nodes.push(p);
    }
  };
  // A fence that is not closed yet is code all the same: the text may still be growing.
  const fence = /^(`{3,}|~{3,})([^\n`]*)\n([\s\S]*?)(?:^\1[`~]*[ \t]*$|(?![\s\S]))/gm;
  let from = 0;
  for (const m of text.matchAll(fence)) {
    paragraphs(text.slice(from, m.index));
    nodes.push(codeBlock(m[3].replace(/\n$/, ""), m[2].trim()));
    from = m.index + m[0].length;
  }
  paragraphs(text.slice(from));
  if (!nodes.length) nodes.push(document.createElement("p"));
  into.replaceChildren(...nodes);
}
