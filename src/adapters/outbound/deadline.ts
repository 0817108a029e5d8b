// The one timer of an attempt: it covers look-up, connection, handshake, headers and body together.

export type Deadline = {
  /** Calls back when the time is over, at once where it is over already. */
  onExpired(callback: () => void): void;
  /** After this nothing is called any more. */
  stop(): void;
};

export function startDeadline(ms: number): Deadline {
  let expired = false;
  const callbacks: (() => void)[] = [];
  const timer = setTimeout(() => {
    expired = true;
    for (const callback of callbacks) callback();
  }, ms);
  return {
    onExpired(callback) {
      if (expired) callback();
      else callbacks.push(callback);
    },
    stop: () => clearTimeout(timer),
  };
}
