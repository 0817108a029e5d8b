// Waiting to be told to stop.

/** Ctrl-C, a supervisor's stop, a terminal that closes. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export type StopRequest = {
  /** Resolves at the first signal. Repeats change nothing: what is under way ends in order. */
  readonly asked: Promise<void>;
  wasAsked(): boolean;
  /** From now on signals do again what they do by default. */
  release(): void;
};

export function awaitStop(): StopRequest {
  const { promise, resolve } = Promise.withResolvers<void>();
  let asked = false;
  const onSignal = () => {
    asked = true;
    resolve();
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    asked: promise,
    wasAsked: () => asked,
    release() {
      for (const signal of SIGNALS) process.off(signal, onSignal);
    },
  };
}
