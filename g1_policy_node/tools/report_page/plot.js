'use strict';
// What the pages' plots share. They are drawn at the width of the screen: text keeps its size, on
// a phone too.
const NS = document.createRange().createContextualFragment('<svg/>').firstChild.namespaceURI;

function add(parent, tag, attributes, text) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// About so many round values from low to high, each with its text.
function ticks(low, high, about) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * (1 - 1e-9));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const at = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) at.push(i * step);
  return at.map((v) => [v, v.toFixed(digits).replace('-', '−')]);
}
