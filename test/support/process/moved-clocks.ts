// Both clocks of this process, moved ahead: a service in it sees time pass. One of them alone would be a jump, as of a clock
// that is set wrong.

export type MovedClocks = {
  /** Moves by whole seconds, to at least this time: Unix ms. */
  moveTo(ms: number): void;
  /** The wall clock alone, as when it is set right: what waits by the monotonic clock continues to wait. */
  setBack(): void;
  restore(): void;
};

export function moveClocks(): MovedClocks {
  const [realNow, realMonotonic] = [Date.now, performance.now];
  let [wall, passed] = [0, 0];
  return {
    moveTo(ms) {
      const by = Math.ceil((ms - Date.now()) / 1000) * 1000;
      [wall, passed] = [wall + by, passed + by];
      performance.now = () => realMonotonic.call(performance) + passed;
      Date.now = () => realNow() + wall;
    },
    setBack() {
      wall = 0;
      Date.now = realNow;
    },
    restore() {
      Date.now = realNow;
      performance.now = realMonotonic;
    },
  };
}
