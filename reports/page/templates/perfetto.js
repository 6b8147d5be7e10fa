/**
 * When everything happened, as a trace that Perfetto opens: reports/explanation/perfetto.py writes the same one, and a
 * test compares them. It is made when its story is opened: with it, the page would be several times as long.
 */
const TRACE = { process: 1, moment: 1000, operations: 1, flushes: 2, firstEpoch: 3, firstThread: 1 << 20, category: "postcrash" };

function traceOf({ id, checker, target, explanation }, timeline) {
  const tracks = [
    [TRACE.operations, "operations"],
    [TRACE.flushes, "flushes"],
    ...explanation.epochs.map(({ number }, place) => [TRACE.firstEpoch + place, `epoch ${number}`]),
    ...new Map(explanation.calls.map(({ thread, program }) => [TRACE.firstThread + thread, `thread ${thread}, ${program}`])),
  ];
  const named = (name, of, more) => ({ ph: "M", pid: TRACE.process, ...more, name, args: { name: of } });
  const at = { ph: "i", s: "g", pid: TRACE.process, tid: TRACE.operations, cat: TRACE.category };
  return {
    traceEvents: [
      named("process_name", `${id}: ${checker} on ${target}`, {}),
      ...tracks.map(([tid, name]) => named("thread_name", name, { tid })),
      ...slicesOf(explanation, timeline).flatMap((slice, place) => endsOf(slice, place + 1, timeline.crash)),
      { ...at, name: "crash", ts: timeline.crash * TRACE.moment },
    ],
    displayTimeUnit: "ms",
  };
}

function slicesOf(explanation, timeline) {
  const operations = new Map(explanation.operations.map((operation) => [operation.number, operation]));
  const calls = new Map(explanation.calls.map((call) => [call.number, call]));
  return [
    ...timeline.operations.map(({ number, span }) => [TRACE.operations, operations.get(number).text, span, {}]),
    ...timeline.calls.map(({ number, span }) => {
      const { thread, text, result, status } = calls.get(number);
      return [TRACE.firstThread + thread, text, span, { result: result || status }];
    }),
    ...timeline.flushes.map((span) => [TRACE.flushes, "flush", span, {}]),
    ...explanation.epochs.flatMap(({ writes }, place) =>
      writes.map((write, within) => {
        const { span, is_torn: torn } = timeline.writes[place][within];
        const { status, sector, sectors, flags, during } = write;
        const details = { status, sector, sectors, flags, during, torn };
        return [TRACE.firstEpoch + place, `${status}: ${wordsOf(write)}`, span, details];
      }),
    ),
  ];
}

/** Both ends of something. Requests overlap, so that each has an identity of its own. */
function endsOf([tid, name, span, args], id, crash) {
  const common = { pid: TRACE.process, tid, cat: TRACE.category, id, name };
  return [
    { ph: "b", ts: span.start * TRACE.moment, ...common, args },
    { ph: "e", ts: (span.end ?? crash) * TRACE.moment, ...common },
  ];
}
