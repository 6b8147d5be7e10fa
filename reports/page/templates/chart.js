/** Pictures of a crash: what happened when, and where on the disk. Every colour comes with a sign or a pattern. */
const STATUS = { stable: "●", kept: "✓", lost: "✗", torn: "◐" };
const CHART = { width: [620, 1180], label: [190, 340], letter: 7, row: 22, top: 40, step: 10, bar: 12 };

/** The width of pictures and of their column of labels, as the window is. They are wider if they have many moments. */
function fitted() {
  const width = Math.min(Math.max(document.body.clientWidth - 80, CHART.width[0]), CHART.width[1]);
  const label = CHART.label[width > 900 ? 1 : 0];
  return { width, label, letters: Math.floor(label / CHART.letter) };
}

/** A write with its moments, and what became of it: `torn` if the crash kept a part of it. */
function timedWrites(explanation, timeline) {
  return explanation.epochs.flatMap((epoch, at) =>
    epoch.writes.map((write, number) => {
      const { span, is_torn: isTorn } = timeline.writes[at][number];
      return { write, span, status: isTorn ? "torn" : write.status, fate: write.status };
    }),
  );
}

/** A chart's scale: the place of each moment. */
function scaleOf(timeline) {
  const { width, label, letters } = fitted();
  const step = Math.max(CHART.step, (width - label - 80) / (timeline.crash + 1));
  const at = (moment) => label + step * (moment + 0.5);
  const span = ({ start, end }) => [at(start), Math.max(at(end ?? timeline.crash) - at(start), 4)];
  return { at, span, label, letters, crash: at(timeline.crash), width: at(timeline.crash) + 70 };
}

/** Operations, system calls and writes on one time axis, one row each. */
function lanes(explanation, timeline) {
  const scale = scaleOf(timeline);
  const names = new Map(explanation.operations.map((operation) => [operation.number, operation]));
  const calls = new Map(explanation.calls.map((call) => [call.number, call]));
  const writes = timedWrites(explanation, timeline);
  const rows = [
    ...timeline.operations.map(({ number, span }) => operationLane(names.get(number), span, scale)),
    ...timeline.calls.map(({ number, span }) => callLane(calls.get(number), span, scale)),
    ...writes.map((timed) => writeLane(timed, scale)),
  ];
  const height = CHART.top + rows.length * CHART.row + 8;
  const called = timeline.calls.length ? `, ${counted(timeline.calls.length, "system call")}` : "";
  const summary =
    `${counted(timeline.operations.length, "operation")}${called} and ${counted(writes.length, "write")} in ` +
    `${counted(explanation.epochs.length, "epoch")} up to the crash; the text below has all of them`;
  return chart("What happened when", summary, scale.width, height, [
    ...background(explanation, timeline, scale, height),
    ...rows.map((row, at) => drawn("g", { transform: `translate(0 ${CHART.top + at * CHART.row})` }, row)),
    ...crashLine(scale, height),
  ]);
}

function operationLane(operation, span, scale) {
  const [x, width] = scale.span(span);
  const isOpen = span.end === null;
  return [
    label(`${operation.number} ${operation.text}`, isOpen ? "in progress at the crash" : "returned", scale),
    drawn("rect", { class: isOpen ? "operation open" : "operation", x, y: 4, width, height: CHART.bar }),
  ];
}

function callLane({ thread, program, text, result, status }, span, scale) {
  const [x, width] = scale.span(span);
  return [
    label(`[${thread}] ${text}`, `thread ${thread}, ${program}: ${result || `${status} at the crash`}`, scale),
    drawn("rect", { class: result ? "call" : "call open", x, y: 6, width, height: CHART.bar - 4 }),
  ];
}

function writeLane({ write, span, status, fate }, scale) {
  const [x, width] = scale.span(span);
  const end = x + width;
  const details = `${status === "torn" ? `torn, this part ${fate}` : status}, ${placeOf(write)}`;
  return [
    label(`${STATUS[status]} ${wordsOf(write)}`, details, scale),
    drawn("rect", { class: `write ${status} ${fate}`, x, y: 4, width, height: CHART.bar }),
    drawn("text", { class: "sign", x: end + 4, y: 15 }, STATUS[status]),
    write.flags && [
      drawn("rect", { class: "fua", x: end - 2, y: 0, width: 4, height: CHART.row - 2 }),
      drawn("text", { class: "flag", x: end + 18, y: 14 }, write.flags),
    ],
  ].flat();
}

function label(text, more, { letters }) {
  return drawn("text", { class: "label", x: 4, y: 14 }, cut(text, letters), drawn("title", {}, `${text} (${more})`));
}

/** Epochs as bands, and flushes as bars through all rows. */
function background(explanation, timeline, scale, height) {
  const starts = [-0.5, ...timeline.ends];
  const bands = explanation.epochs.map((epoch, at) => {
    const x = scale.at(starts[at]);
    const width = scale.at(timeline.ends[at]) - x;
    const name = width > 60 ? `epoch ${epoch.number}` : String(epoch.number);
    return [
      drawn("rect", { class: at % 2 ? "band odd" : "band", x, y: 0, width, height }),
      drawn("text", { class: "epoch", x: x + 4, y: 14 }, name),
    ];
  });
  const flushes = timeline.flushes.map((span) => {
    const [x, width] = scale.span(span);
    return [
      drawn("rect", { class: "flush", x, y: 18, width, height: height - 18 }, drawn("title", {}, "flush")),
      drawn("text", { class: "flag", x: x + 2, y: 30 }, "F"),
    ];
  });
  return [...bands, ...flushes].flat();
}

function crashLine(scale, height) {
  return [
    drawn("line", { class: "crash", x1: scale.crash, x2: scale.crash, y1: 0, y2: height }),
    drawn("text", { class: "crash", x: scale.crash + 4, y: 14 }, "⚡ crash"),
  ];
}

/** The disk by address and time: neighbouring sectors are one strip, and strips far from each other stand together. */
function diskMap(explanation, timeline) {
  const writes = timedWrites(explanation, timeline);
  if (!writes.length) return null;
  const scale = scaleOf(timeline);
  const strips = stripsOf(writes);
  const drawnStrips = strips.map((strip) => stripLane(strip, scale));
  const last = strips.at(-1);
  const height = last.top + last.height + 12;
  const summary = `${counted(strips.length, "place")} of the disk, by address and time`;
  return chart("Where on the disk", summary, scale.width, height, [
    ...background(explanation, timeline, scale, height),
    ...drawnStrips.flat(),
    ...crashLine(scale, height),
  ]);
}

/** Runs of sectors that are written, in the order of their addresses, each with its writes and its place. */
function stripsOf(writes) {
  const strips = [];
  for (const timed of [...writes].sort((one, other) => one.write.sector - other.write.sector)) {
    const { sector, sectors } = timed.write;
    const last = strips.at(-1);
    if (last && sector <= last.end) {
      last.end = Math.max(last.end, sector + sectors);
      last.writes.push(timed);
    } else {
      strips.push({ start: sector, end: sector + sectors, writes: [timed] });
    }
  }
  let top = CHART.top;
  for (const strip of strips) {
    strip.names = [...new Set(strip.writes.map(({ write }) => write.name || write.what))];
    strip.height = Math.min(34 + 6 * Math.log2((strip.end - strip.start) / 8 + 1), 90);
    strip.top = top;
    top += strip.height + 8;
  }
  return strips;
}

function stripLane(strip, scale) {
  const inside = strip.height - 4;
  const y = (sector) => strip.top + 2 + (inside * (sector - strip.start)) / (strip.end - strip.start);
  const [first, ...others] = strip.names;
  const more = others.length ? ` and ${others.length} more` : "";
  const names = drawn("title", {}, strip.names.join("\n"));
  const place = { x: scale.label, y: strip.top, width: scale.crash - scale.label, height: strip.height };
  return [
    drawn("rect", { class: "strip", ...place }),
    drawn("text", { class: "label", x: 4, y: strip.top + 14 }, cut(first, scale.letters - more.length) + more, names),
    drawn("text", { class: "address", x: 4, y: strip.top + 29 }, `sectors ${strip.start} to ${strip.end}`),
    strip.writes.map(({ write, span, status, fate }) => {
      const [x] = scale.span(span);
      const start = y(write.sector);
      const height = Math.max(y(write.sector + write.sectors) - start, 4);
      const box = { class: `write ${status} ${fate}`, x, y: start, width: scale.crash - x, height };
      const sign = { class: "sign inside", x: x + 4, y: start + Math.min(height / 2 + 5, 16) };
      return [
        drawn("rect", box, drawn("title", {}, `${wordsOf(write)}: ${status}`)),
        height >= CHART.bar && drawn("text", sign, STATUS[status]),
      ];
    }),
  ].flat(3);
}

function chart(title, summary, width, height, parts) {
  const attributes = { role: "img", "aria-label": `${title}: ${summary}`, viewBox: `0 0 ${width} ${height}` };
  const picture = drawn("svg", { ...attributes, width, height }, parts);
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, picture);
  return element("figure", { class: "chart" }, element("h3", {}, title), scroll);
}

function legend(hasCalls) {
  const item = (name, words) => {
    const box = drawn("rect", { class: name, x: 1, y: 1, width: 20, height: 12 });
    return element("li", {}, drawn("svg", { width: 22, height: 14, "aria-hidden": "true" }, box), ` ${words}`);
  };
  return element(
    "ul",
    { class: "legend" },
    item("write stable stable", "● stable: no crash could lose it"),
    item("write kept kept", "✓ in flight, kept"),
    item("write lost lost", "✗ in flight, lost"),
    item("write torn lost", "◐ torn: kept in part"),
    item("flush", "F flush"),
    item("fua", "FUA"),
    hasCalls && item("call", "system call of a thread [1]"),
    element("li", {}, "a recording has an order but no clock: a step to the right is its next event"),
  );
}
