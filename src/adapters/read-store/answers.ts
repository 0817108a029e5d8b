/** Whether `ask` succeeds in time. Never throws. */
export async function answersWithin(limitMs: number, ask: () => Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), limitMs);
  });
  const asked = ask().then(
    () => true,
    () => false,
  );
  return await Promise.race([asked, late]).finally(() => clearTimeout(timer));
}
