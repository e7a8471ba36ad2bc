const by = id => document.getElementById(id);

function make(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== "") made.append(child);
  return made;
}

const MARKS = {good: "\u2713 ", warn: "\u25cb ", bad: "\u2717 ", dim: "\u2013 "};

function mark(word, tone) {
  return make("span", {class: "mark " + tone}, MARKS[tone] + word);
}

function many(count, noun) { return count + " " + noun + (count === 1 ? "" : "s"); }

function numbers(pairs) {
  const list = make("dl", {class: "numbers"});
  for (const [name, value, tone] of pairs) {
    list.append(make("div", {}, make("dt", {}, name), make("dd", tone ? {class: tone} : {}, String(value))));
  }
  return list;
}

function say(words, tone) {
  const state = by("state");
  if (state.textContent !== words) { state.textContent = words; state.className = tone; }
}
