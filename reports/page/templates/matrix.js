/** The heat map: its filters, its keys, and the evidence of the cell that is open. */
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

function showMap(state) {
  const map = document.getElementById("map");
  if (!map) return;
  const headings = [...map.tHead.rows[map.tHead.rows.length - 1].cells];
  const isHidden = headings.map((th, at) => at > 0 && !isChosen(th, state));
  headings.forEach((th, at) => (th.hidden = isHidden[at]));
  showGroups(map, isHidden);
  for (const row of map.tBodies[0].rows) {
    row.hidden = !isChosen(row, state);
    [...row.cells].forEach((cell, at) => {
      const link = linkOf(cell);
      const isOther = link !== null && !isAnswer(cell, state);
      cell.hidden = isHidden[at];
      cell.classList.toggle("dim", isOther);
      cell.classList.toggle("chosen", state.cell !== "" && link?.hash === "#" + state.cell);
      if (link) document.getElementById(link.hash.slice(1)).hidden = row.hidden || cell.hidden || isOther;
    });
  }
  const links = linksOf(map);
  const current = links.find((link) => link.tabIndex === 0 && link.hash !== "") ?? links[0];
  choose(links, links.find((link) => link.hash === "#" + state.cell) ?? current);
}

/** Each heading of several columns is as wide as those that are shown. */
function showGroups(map, isHidden) {
  let at = 1;
  for (const th of map.tHead.querySelectorAll("th[data-columns]")) {
    const end = at + Number(th.dataset.columns);
    const count = isHidden.slice(at, end).filter((hidden) => !hidden).length;
    th.hidden = count === 0;
    th.colSpan = Math.max(count, 1);
    at = end;
  }
}

/** Whether the filters choose a line or column. What its heading does not say differs from cell to cell. */
function isChosen({ dataset: { target, kernel, judges } }, state) {
  return (
    (target === undefined || fits(state.target, target)) &&
    (kernel === undefined || fits(state.kernel, kernel)) &&
    (judges === undefined || fitsOne(state.judge, judges))
  );
}

/** Whether the filters choose what a cell or an entry says. */
function isAnswer({ dataset: { standing, adversary } }, state) {
  return fits(state.standing, standing) && isWithin(state.adversary, adversary);
}

/** Whether no stronger adversary than the wanted one is needed. The choices stand in order, the weakest first. */
function isWithin(wanted, needed) {
  const choices = filters.elements.adversary?.options;
  if (!wanted || !needed || !choices) return true;
  const order = [...choices].map((option) => option.value);
  return order.indexOf(needed) <= order.indexOf(wanted);
}

function fits(wanted, found) {
  return !wanted || wanted === found;
}

function fitsOne(wanted, found) {
  return !wanted || (found ?? "").split("\n").includes(wanted);
}

function linkOf(cell) {
  return cell.querySelector("a");
}

/** The links of the cells that are shown. */
function linksOf(map) {
  return [...map.tBodies[0].querySelectorAll("tr:not([hidden]) td:not([hidden]) a")];
}

/** Of all cells, Tab comes to one; the arrow keys go from there. */
function choose(links, chosen) {
  for (const link of links) link.tabIndex = link === chosen ? 0 : -1;
}

function showEvidence(state) {
  const place = document.getElementById("evidence");
  const row = state.cell.startsWith("cell-") ? document.getElementById(state.cell) : null;
  if (!place) return;
  place.hidden = row === null;
  place.replaceChildren(...(row ? evidence(row) : []));
}

function evidence(row) {
  const headings = [...row.closest("table").tHead.rows[0].cells].map((th) => th.textContent);
  const facts = [...row.cells].slice(3).map((cell, at) => [headings[at + 3], [...cell.cloneNode(true).childNodes]]);
  const close = element("button", { type: "button", class: "close", "aria-label": "Close the evidence" }, "×");
  close.addEventListener("click", closeCell);
  const [judge, target, kernel] = [...row.cells].map((cell) => cell.textContent);
  return [
    close,
    element("h3", { tabindex: "-1" }, `${judge} on ${target}, ${kernel}`),
    element("dl", { class: "facts" }, facts.filter(([, found]) => found.length).map(fact)),
  ];
}

function fact([name, found]) {
  return element("div", {}, element("dt", {}, name), element("dd", {}, found));
}

function closeCell() {
  const link = document.querySelector(`#map a[href="#${CSS.escape(shown.cell)}"]`);
  go({ cell: "" });
  link?.focus();
}

function moveInMap(event) {
  const link = event.target.closest("td a");
  const step = ARROWS[event.key];
  if (!link || !step || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const rows = [...event.currentTarget.tBodies[0].rows].filter((row) => !row.hidden);
  const [down, right] = step;
  let row = rows.indexOf(link.closest("tr"));
  let column = link.closest("td").cellIndex;
  for (;;) {
    row += down;
    column += right;
    const cell = rows[row]?.cells[column];
    if (!cell || column < 1) return;
    const next = cell.hidden ? null : linkOf(cell);
    if (!next) continue;
    choose(linksOf(event.currentTarget), next);
    next.focus();
    return;
  }
}

function openCell(event) {
  const link = event.target.closest("td a");
  if (!link) return;
  event.preventDefault();
  const id = link.hash.slice(1);
  go({ cell: shown.cell === id ? "" : id });
  document.querySelector("#evidence h3")?.focus({ preventScroll: false });
}
