// One answer for all who ask the same at once. Who asks while it is being worked out shares the next one: no answer is
// older than its question.

type Work = () => Promise<unknown>;
type Next = { work: Work; answer: Promise<unknown> };

/** Of those who share an answer, the work of who came last is done. It has to end: others wait for it. */
export type SharedAsk = (key: string, work: Work) => Promise<unknown>;

export function sharedAsk(): SharedAsk {
  const asked = new Map<string, { readonly ended: Promise<void>; next: Next | null }>();
  return ask;

  function ask(key: string, work: Work): Promise<unknown> {
    const current = asked.get(key);
    if (current === undefined) return begin(key, work);
    const { next } = current;
    if (next === null) {
      const waiting: Next = { work, answer: current.ended.then(() => begin(key, waiting.work)) };
      current.next = waiting;
      return waiting.answer;
    }
    next.work = work;
    return next.answer;
  }

  function begin(key: string, work: Work): Promise<unknown> {
    const answer = work();
    const end = () => {
      if (current.next === null) asked.delete(key);
    };
    const current: { ended: Promise<void>; next: Next | null } = { ended: answer.then(end, end), next: null };
    asked.set(key, current);
    return answer;
  }
}
