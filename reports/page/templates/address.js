/** What the page shows stands in its address, after the #, so that an address can be kept and sent. */
const FIELDS = ["target", "kernel", "judge", "standing", "adversary", "text", "cell", "open"];
const NOTHING = Object.fromEntries(FIELDS.map((name) => [name, ""]));
let shown = NOTHING;

/** The state of an address. A plain #id, as links have it without JavaScript, opens this and leaves the rest. */
function stateOf(hash) {
  const text = hash.slice(1);
  if (text && !text.includes("=")) return withOpen(text);
  const given = new URLSearchParams(text);
  return Object.fromEntries(FIELDS.map((name) => [name, offered(name, given.get(name) ?? "")]));
}

/** The value, or nothing if it is none of those that the page offers: an address may be of another report. */
function offered(name, value) {
  const choices = filters?.elements[name]?.options;
  return choices && ![...choices].some((option) => option.value === value) ? "" : value;
}

function withOpen(id) {
  if (id.startsWith("cell-")) return { ...shown, cell: id };
  const found = document.getElementById(id);
  return found?.matches(".entry") ? { ...shown, open: joined([...opened(shown), id]) } : shown;
}

/** The ids of the open entries. */
function opened(state) {
  return state.open ? state.open.split(",") : [];
}

function joined(ids) {
  return [...new Set(ids)].join(",");
}

function addressOf(state) {
  const given = new URLSearchParams(FIELDS.filter((name) => state[name]).map((name) => [name, state[name]]));
  return "#" + given.toString();
}

/** Show a changed state. It becomes a new place of the browser's history unless it `replaces` the present one. */
function go(changes, replaces = false) {
  const next = { ...shown, ...changes };
  const change = replaces ? "replaceState" : "pushState";
  if (addressOf(next) !== addressOf(shown)) history[change](null, "", addressOf(next));
  show(next);
}

/** Show what the address says, as when the page is loaded, a link is followed, or the browser goes back. */
function followAddress() {
  const before = new Set(opened(shown));
  const next = stateOf(location.hash);
  if (addressOf(next) !== location.hash && location.hash) history.replaceState(null, "", addressOf(next));
  show(next);
  const fresh = opened(next)
    .filter((id) => !before.has(id))
    .at(-1);
  if (fresh) document.getElementById(fresh)?.scrollIntoView();
}
