"use strict";

/** Text as `visible` of model/text.py makes it: everything that does not print is an escape. */
function visible(text) {
  return String(text).replace(/[\p{C}\p{Z}]/gu, (one) => (" \n\t".includes(one) ? one : escaped(one.codePointAt(0))));
}

function escaped(code) {
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return "\\" + letter + code.toString(16).padStart(digits, "0");
}

/** An element of HTML. Attributes that are null or false are left out; children are nodes, texts, or lists of them. */
function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of SVG, as `element`. */
function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== false) made.append(child instanceof Node ? child : visible(child));
  }
  return made;
}

/** Text with what stands between backticks as code. A backtick without its other half is a backtick. */
function coded(text) {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, number) => (number % 2 ? element("code", {}, part) : part)) : [text];
}

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), children);
}

function note(...children) {
  return element("p", { class: "note" }, children);
}

function counted(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** At most `length` characters of a text. */
function cut(text, length) {
  const characters = [...visible(text).replace(/\s+/g, " ")];
  return characters.length > length ? characters.slice(0, length - 1).join("") + "…" : characters.join("");
}
