/** Puts the parts together: what is shown, what keys do, the theme, and paper. */
const block = JSON.parse(document.getElementById("stories").textContent);
const entries = [...document.querySelectorAll("details.entry")];
const filters = document.getElementById("filters");
const scheme = matchMedia("(prefers-color-scheme: dark)");

function show(state) {
  shown = state;
  for (const field of filters.elements) if (field.name) field.value = state[field.name];
  showMap(state);
  showEvidence(state);
  const open = new Set(opened(state));
  for (const entry of entries) {
    entry.hidden = !isWanted(entry, state) && !open.has(entry.id);
    if (!entry.hidden) setOpen(entry, open.has(entry.id));
  }
  const count = entries.filter((entry) => !entry.hidden).length;
  const status = document.getElementById("count");
  if (status) status.textContent = `${count} of ${counted(entries.length, "finding")}`;
}

function isWanted(entry, state) {
  const { target, kernel, judges } = entry.dataset;
  const fields = fits(state.target, target) && fits(state.kernel, kernel) && isAnswer(entry, state);
  return fields && fitsOne(state.judge, judges) && textOf(entry).includes(state.text.toLowerCase());
}

const texts = new Map();

/** The words of an entry in which a text is looked for: those that are there before its story is told. */
function textOf(entry) {
  if (!texts.has(entry))
    texts.set(entry, `${entry.id} ${entry.dataset.finding ?? ""} ${entry.textContent}`.toLowerCase());
  return texts.get(entry);
}

function setOpen(entry, isOpen) {
  if (isOpen) tell(entry);
  entry.open = isOpen;
}

/** Make the story of an entry, once. */
function tell(entry) {
  textOf(entry);
  const story = Object.hasOwn(block.stories, entry.dataset.finding) ? block.stories[entry.dataset.finding] : null;
  if (!story || entry.querySelector(".story")) return;
  entry.querySelector(".body").append(element("div", { class: "story" }, storyOf(story, block)));
}

function toggle(event) {
  const summary = event.target.closest(".entry > summary");
  if (!summary) return;
  event.preventDefault();
  const { id, open } = summary.parentElement;
  go({ open: joined(open ? opened(shown).filter((each) => each !== id) : [...opened(shown), id]) });
}

function pressed(event) {
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    filters.elements.text.focus();
  } else if (event.key === "Escape") {
    close(event.target);
  }
}

/** Escape closes what is around the focus, or else the evidence. In the field of a text, it clears the text. */
function close(target) {
  const entry = target.closest(".entry[open]");
  if (target === filters.elements.text) {
    go({ text: "" });
  } else if (entry) {
    go({ open: joined(opened(shown).filter((id) => id !== entry.id)) });
    entry.querySelector("summary").focus();
  } else if (shown.cell) {
    closeCell();
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const other = theme === "dark" ? "light" : "dark";
  const button = document.getElementById("theme");
  button.textContent = other === "dark" ? "☾ dark" : "☀ light";
  button.setAttribute("aria-label", `Show the page ${other}`);
  return other;
}

function startTheme() {
  const button = document.getElementById("theme");
  let other = setTheme(scheme.matches ? "dark" : "light");
  button.hidden = false;
  button.addEventListener("click", () => (other = setTheme(other)));
  scheme.addEventListener("change", () => (other = setTheme(scheme.matches ? "dark" : "light")));
}

/** Paper cannot be clicked: what is shown is opened, and afterwards it is as before. */
function expand(isPaper) {
  for (const entry of entries) if (!entry.hidden && isPaper) tell(entry);
  for (const details of document.querySelectorAll("details")) {
    if (isPaper && !details.dataset.open) {
      details.dataset.open = details.open;
      details.open = true;
    } else if (!isPaper && details.dataset.open) {
      details.open = details.dataset.open === "true";
      delete details.dataset.open;
    }
  }
}

function filter(event) {
  go({ [event.target.name]: event.target.value }, event.target.name === "text");
}

function start() {
  document.documentElement.classList.add("scripted");
  filters.hidden = false;
  filters.addEventListener("input", filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", (event) => {
    event.preventDefault();
    go({ ...NOTHING, open: shown.open, cell: shown.cell });
  });
  const map = document.getElementById("map");
  map?.addEventListener("click", openCell);
  map?.addEventListener("keydown", moveInMap);
  document.addEventListener("click", toggle);
  document.addEventListener("keydown", pressed);
  document.addEventListener("toggle", (event) => event.target.matches(".entry[open]") && tell(event.target), true);
  addEventListener("hashchange", followAddress);
  addEventListener("beforeprint", () => expand(true));
  addEventListener("afterprint", () => expand(false));
  startTheme();
  followAddress();
}

start();
