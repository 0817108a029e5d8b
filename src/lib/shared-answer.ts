// One question for all who ask it at the same time, or shortly after another: however many ask, it costs what one does.

/**
 * Asks unless a question is under way or was answered within the last `keepMs`. A failure goes to those who wait for it, and
 * is not kept.
 */
export function sharedAnswer<T>(
  clock: { monotonic(): number },
  keepMs: number,
  ask: () => Promise<T>,
): () => Promise<T> {
  type Asked = { readonly answer: Promise<T>; answeredAt: number | null };
  let last: Asked | null = null;
  return () => {
    if (last !== null && (last.answeredAt === null || clock.monotonic() - last.answeredAt < keepMs))
      return last.answer;
    const asked: Asked = { answer: ask(), answeredAt: null };
    last = asked;
    asked.answer.then(
      () => {
        asked.answeredAt = clock.monotonic();
      },
      () => {
        last = null;
      },
    );
    return asked.answer;
  };
}
