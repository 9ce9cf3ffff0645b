"use strict";
// The search of the pages: sections ranked by how many of the words they have, how rare those are, and where they stand.

const small = new Set("a an and are as at be by can do does for from how i in is it its me my of on one or that the them to what when which with".split(" "));

// stem makes words of one kind equal: limits and limit, cancelled and cancel, retries and retry.
function stem(word) {
  word = word.replace(/ies$/, "y").replace(/(ing|ed|s)$/, "");
  return word.replace(/([^aeiou])\1$/, "$1").replace(/e$/, "");
}

function words(text) {
  return (text.toLowerCase().match(/[a-z0-9]+/g) || []).filter((word) => !small.has(word)).map(stem);
}

// counted is how often a text has each word.
function counted(text) {
  const counts = new Map();
  for (const word of words(text)) counts.set(word, (counts.get(word) || 0) + 1);
  return counts;
}

// prepare reads the sections once.
function prepare(sections) {
  const parts = sections.map(([title, heading, address, text, door]) => ({
    title, heading, address, text, door,
    inTitle: counted(title), inHeading: counted(heading), inText: counted(text), length: words(text).length,
  }));
  const having = new Map();
  for (const p of parts) {
    for (const word of new Set([...p.inTitle.keys(), ...p.inHeading.keys(), ...p.inText.keys()])) having.set(word, (having.get(word) || 0) + 1);
  }
  return { parts, having, usual: parts.reduce((sum, p) => sum + p.length, 0) / parts.length };
}

// By which door a reader is likely to look for the answer to a question.
const doors = { Start: 1.1, Guides: 1.3, Concepts: 1.1, Operate: 1.2, Reference: 0.75, Developers: 0.4 };

// find is the best sections for a question, the best first: by Okapi BM25 for the text, and more for words of a heading or a title.
function find(index, question, most = 8) {
  const asked = [...new Set(words(question))];
  const ranked = [];
  for (const p of index.parts) {
    let score = 0, has = 0;
    const long = 1.2 * (0.35 + 0.65 * p.length / index.usual);
    for (const word of asked) {
      const n = index.having.get(word) || 0;
      const rare = Math.log(1 + (index.parts.length - n + 0.5) / (n + 0.5));
      const times = p.inText.get(word) || 0;
      const hit = 1.5 * Math.min(p.inHeading.get(word) || 0, 1) + 0.8 * Math.min(p.inTitle.get(word) || 0, 1) + 2.2 * times / (times + long);
      if (hit > 0) has++;
      score += rare * hit;
    }
    if (has > 0) ranked.push({ ...p, score: score * (doors[p.door] || 1) * (has / asked.length) ** 1.5 });
  }
  return ranked.sort((a, b) => b.score - a.score).slice(0, most);
}

// excerpt is the part of a text around the first word that was asked for.
function excerpt(text, question) {
  const asked = new Set(words(question));
  const all = text.split(" ");
  const at = Math.max(all.findIndex((word) => words(word).some((w) => asked.has(w))), 0);
  return all.slice(Math.max(at - 6, 0), at + 18).join(" ");
}

function show(box, index, question) {
  const list = box.querySelector("ol");
  list.replaceChildren();
  if (words(question).length === 0) return;
  for (const hit of find(index, question)) {
    const link = document.createElement("a");
    link.href = box.dataset.root + hit.address;
    link.textContent = hit.heading ? hit.title + ": " + hit.heading : hit.title;
    const more = document.createElement("small");
    more.textContent = excerpt(hit.text, question);
    const item = document.createElement("li");
    item.append(link, more);
    list.append(item);
  }
  if (!list.firstChild) list.append(Object.assign(document.createElement("li"), { textContent: "No page has these words." }));
}

function begin() {
  const box = document.getElementById("search");
  const field = box.querySelector("input");
  let index;
  box.hidden = false;
  field.addEventListener("input", () => show(box, index ||= prepare(sections), field.value));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target === document.body) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape") {
      field.value = "";
      show(box, index ||= prepare(sections), "");
    } else if (event.key === "Enter" && event.target === field) {
      box.querySelector("ol a")?.click();
    }
  });
}

if (typeof document === "undefined") module.exports = { prepare, find };
else begin();
