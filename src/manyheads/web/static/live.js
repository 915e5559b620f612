// Ask while a person types: one question is in flight, the latest waits, and an answer that is old is said to be.

const OLD = 400; // milliseconds after which an answer that belongs to other words is dimmed

/**
 * `work(question, signal)` asks; `done(answer, question)` shows what came, also when a newer question
 * waits: an answer to what stood there a moment ago is better than none. `old(is)` dims and undims.
 */
export function makeLive({ work, done, failed, old }) {
  let running = null;
  let waiting = null;
  let since = null; // when the words changed that no answer belongs to yet
  let next = null; // when they first changed after the question that is in flight
  let timer = null;

  function touched() {
    const now = performance.now();
    since ??= now;
    if (running) next ??= now;
    count();
  }

  function count() {
    clearTimeout(timer);
    if (since !== null) timer = setTimeout(() => old(true), Math.max(0, since + OLD - performance.now()));
  }

  async function run(question) {
    const mine = new AbortController();
    running = mine;
    next = null;
    try {
      const answer = await work(question, mine.signal);
      if (mine.signal.aborted) return;
      since = next;
      if (since === null) old(false);
      count();
      await done(answer, question);
    } catch (error) {
      if (mine.signal.aborted || error.name === "AbortError") return;
      clearTimeout(timer);
      since = null;
      old(true);
      failed(error, question);
    } finally {
      if (running === mine) {
        running = null;
        const later = waiting;
        waiting = null;
        if (later !== null) run(later);
      }
    }
  }

  return {
    /** The words have changed; they are asked about in a moment. */
    touched,
    ask(question) {
      touched();
      if (running) waiting = question;
      else run(question);
    },
    stop() {
      clearTimeout(timer);
      running?.abort();
      running = waiting = since = next = null;
    },
    get busy() {
      return Boolean(running);
    },
  };
}
