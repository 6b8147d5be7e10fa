/** The story of one finding, made from what the store has of it. */
function storyOf({ finding: stored, timeline, script, no_script: noScript, notes }, { texts, lines }) {
  const finding = JSON.parse(stored);
  const explanation = finding.explanation;
  const parts = explanation ? explained(finding, timeline, notes, texts) : unexplained(finding);
  const scriptLines = script.map((number) => lines[number]);
  const trace = explanation && timeline && traceOf(finding, timeline);
  return [facts(finding), ...parts, downloads(finding, stored, scriptLines, noScript, trace)];
}

function facts(finding) {
  const known = [
    ["workload", finding.workload_name],
    ["kernel", finding.kernel],
    ["device model", finding.model],
    ["crash state", finding.state || "none: the guest was lost while it ran the workload"],
    ["smallest workload", finding.minimal === finding.id ? "this one" : finding.minimal],
  ];
  const whole = element("p", { class: "whole" }, coded(finding.message));
  return element("section", {}, whole, element("dl", { class: "facts" }, known.filter(([, value]) => value).map(fact)));
}

function explained({ id, explanation, needed }, timeline, notes, texts) {
  const known = { id, needed, names: notes.names, texts };
  return [
    element("div", { class: "columns" }, operations(explanation), lost(explanation, known)),
    systemCalls(explanation),
    comparison(explanation, notes.reference),
    timeline && element("section", {}, lanes(explanation, timeline), diskMap(explanation, timeline), legend(timeline.calls.length > 0)),
    requests(explanation),
    explanation.evidence.map(({ title, text }) => folded(title, element("pre", {}, text), true)),
  ].flat();
}

function unexplained({ workload_text: text, casualty }) {
  const console =
    casualty &&
    folded(`Console: ${casualty.what}`, element("pre", {}, casualty.console + "\n" + casualty.stacks), true);
  return [element("h3", {}, "Workload"), element("pre", { class: "workload" }, text), console];
}

function folded(title, content, isOpen) {
  const heading = title.charAt(0).toUpperCase() + title.slice(1);
  return element("details", { open: isOpen }, element("summary", {}, heading), content);
}

/** The operations, with the crash behind the last that had started. */
function operations({ operations: all }) {
  const last = all.findLastIndex(({ status }) => status === "returned" || status === "in progress");
  const items = all.map(({ number, text, status }) =>
    operationItem(number, status, element("code", {}, text), element("span", {}, ` ${status}`)),
  );
  const inside = all[last]?.status === "in progress";
  const crash = inside ? "⚡ crash, during the operation above" : "⚡ crash";
  items.splice(last + 1, 0, element("li", { class: "crash-mark" }, crash));
  return section("Workload, and how far it was", element("ol", { class: "operations" }, items));
}

function operationItem(number, status, ...children) {
  return element("li", { class: status.replace(" ", "-"), value: number }, children);
}

/** The system calls of the program on the file system, in the order of the disk's requests. */
function systemCalls({ calls }) {
  if (!calls.length) return false;
  const items = calls.map(({ number, thread, program, text, result, status }) =>
    operationItem(
      number,
      status,
      element("code", {}, text),
      element("span", {}, result ? ` = ${result}` : ` ${status}`),
      element("small", {}, ` thread ${thread}, ${program}`),
    ),
  );
  const list = element("ol", { class: "operations calls" }, items);
  return folded("The last system calls on the target", list, calls.length <= 12);
}

/** The lost writes and, if this was tested, which of them matter. */
function lost({ lost: writes, lost_omitted: more, unsent }, { id, needed, names, texts }) {
  const items = [
    ...writes.map((write) => writeItem(write, isNeeded(write, needed) && texts.passes_with_it)),
    ...unsent.map((operation) => {
      const words = element("span", {}, element("code", {}, operation), ` ${texts.unsent}`);
      return element("li", { class: "lost" }, statusOf("lost"), words);
    }),
  ];
  return section(
    "Writes that the crash lost",
    element("ul", { class: "writes" }, items),
    writes.length > 0 &&
      needed === null &&
      note(coded(`which of them matter: \`${texts.invocation} repro --flip ${id}\``)),
    more > 0 && note(`${more} more`),
    !writes.length && note(texts.nothing_lost),
    names && note(names),
  );
}

function statusOf(status) {
  return element("span", { class: "status" }, `${STATUS[status]} ${status}`);
}

function writeItem(write, more) {
  const words = element(
    "span",
    {},
    coded(wordsOf(write)),
    write.flags && element("b", {}, ` ${write.flags}`),
    element("small", {}, ` ${placeOf(write)}, ${whenOf(write)}`),
    more && element("strong", { class: "matters" }, `✓ ${more}`),
  );
  return element("li", { class: write.status }, statusOf(write.status), words);
}

/** As `is_needed` of reports/explanation/explanation_text.py. */
function isNeeded({ sector, sectors }, needed) {
  return (needed ?? []).some(([start, length]) => start < sector + sectors && sector < start + length);
}

/** As `ExplainedWrite.words` of store/explanation_data.py. */
function wordsOf({ what, name }) {
  if (!name) return what;
  return what.includes("`") ? `${name}: ${what}` : name;
}

function placeOf({ sector, sectors }) {
  return `sectors ${sector} to ${sector + sectors}`;
}

function whenOf({ during }) {
  return during ? `operation ${during}` : "between operations";
}

/** The tree after recovery beside the allowed one, which is not known for programs. */
function comparison({ failure, comparison: paths, comparison_omitted: more, reference, objections }, referenceNote) {
  if (!failure && paths.length === 0) return false;
  const isCompared = paths.some(({ reference: lines }) => lines.length > 0);
  const rows = paths.map(({ path, found, allowed, in_progress: later, differs, reference: theirs }) => {
    const cross = differs && element("span", { class: "cross" }, "✗ differs ");
    return element(
      "tr",
      { class: differs && "differs" },
      element("th", { scope: "row" }, cross, element("code", {}, path)),
      element("td", { "data-label": "found" }, lined(found)),
      isCompared && element("td", { "data-label": visible(`on ${reference}`) }, lined(theirs)),
      element(
        "td",
        { "data-label": isCompared ? "without a crash" : "allowed" },
        lined(allowed),
        later.length > 0 && [element("em", {}, "or, once the operation in progress is done:"), lined(later)],
      ),
    );
  });
  const left = "what all operations that had returned leave";
  const headings = isCompared
    ? ["path", "found", `on ${reference}`, `without a crash: ${left}`]
    : ["path", "found", `allowed: ${left}`];
  const headingCells = headings.map((text) => element("th", { scope: "col" }, text));
  const head = element("thead", {}, element("tr", {}, headingCells));
  return section(
    isCompared ? `After recovery: found beside ${reference}` : "After recovery: found beside allowed",
    failure && element("p", { class: "failure" }, `✗ ${failure}`),
    rows.length > 0 && element("table", { class: "comparison" }, head, element("tbody", {}, rows)),
    more > 0 && note(`${more} more paths`),
    referenceNote && note(referenceNote),
    objections.map((objection) => element("p", { class: "failure" }, `✗ ${objection}`)),
  );
}

function lined(lines) {
  return lines.map((line) => element("div", {}, line));
}

function requests({ epochs, epochs_omitted: earlier }) {
  if (!earlier && epochs.every(({ writes, omitted }) => writes.length + omitted === 0)) return false;
  const items = epochs.flatMap(({ number, ended, writes, omitted }) => {
    const writeItems = writes.map((write) => writeItem(write, ""));
    return [
      element("ul", { class: "writes" }, writeItems),
      omitted > 0 && note(`${omitted} more writes`),
      element("p", { class: ended === "crash" ? "end crash" : "end" }, `epoch ${number} ends: ${ended}`),
    ];
  });
  const before = earlier > 0 && note(`${earlier} earlier epochs`);
  return folded("Requests up to the crash, flush by flush", element("div", {}, before, items), false);
}

/** Files to be saved. Their contents are in the links, so that nothing is fetched. */
function downloads(finding, stored, script, noScript, trace) {
  const files = [
    [`${finding.id}.ops`, "the workload", "text/plain", finding.workload_text],
    [`${finding.id}.json`, "all that the store has of the finding", "application/json", stored + "\n"],
  ];
  if (script.length) {
    const words = "a shell script for any test machine; it was not run";
    files.push([`${finding.id}.sh`, words, "text/x-shellscript", script.join("\n") + "\n"]);
  }
  if (trace) {
    const words = "when everything happened, for Perfetto";
    files.push([`${finding.id}.trace.json`, words, "application/json", JSON.stringify(trace)]);
  }
  const links = files.map(([name, words, type, text]) => {
    const href = `data:${type};charset=utf-8,${encodeURIComponent(text.toWellFormed())}`;
    return element("li", {}, element("a", { href, download: name }, name), ` ${words}`);
  });
  return element(
    "section",
    { class: "saved" },
    element("h3", {}, "Downloads"),
    element("ul", { class: "downloads" }, links),
    noScript && note(`There is no shell script: ${noScript}`),
  );
}
