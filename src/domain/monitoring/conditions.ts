// What can be wrong with a part of the service: each condition is declared here once, with the sentence that the log,
// `/health`, the doctor and the status page state, and with the alert rule that fires for it.

/** Values for a sentence's placeholders, also as fields of the log line. No path, address or key. */
export type ConditionFacts = Readonly<Record<string, string | number>>;

export type Declared = {
  /** What is wrong, what follows for callers and what to do. `{name}`: the fact of that name. */
  readonly message: string;
  readonly level: 'warn' | 'error';
  /** The rule of `deploy/prometheus/rules.yaml` that fires, or why none does. */
  readonly alert: string | { readonly none: string };
};

export type DeclaredPart = {
  /** The log line when nothing is wrong with the part any more. */
  readonly over: string;
  readonly codes: Readonly<Record<string, Declared>>;
};

export const CONDITIONS = {
  recovery: {
    over: 'every interrupted job was closed',
    codes: {
      unclosable: {
        message:
          'Interrupted jobs could not be closed: their callers wait for a receipt. Recovery repeats, at least every 5 minutes; the log has the causes.',
        level: 'error',
        alert: 'RelayJobsUnclosable',
      },
    },
  },
  schedules: {
    over: 'runs of schedules are started and sold again',
    codes: {
      wrong_clock: {
        message:
          'The clock differs by {differsMs} ms from that of the database, or has jumped: no run of a schedule is started and none is sold. Set it; runs go ahead when both agree for a minute.',
        level: 'error',
        alert: { none: '/health and the log name it; calls are not affected.' },
      },
    },
  },
} as const satisfies Readonly<Record<string, DeclaredPart>>;

export type Part = keyof typeof CONDITIONS;
export type CodeOf<P extends Part> = keyof (typeof CONDITIONS)[P]['codes'] & string;

export const declared = (part: Part, code: string): Declared => {
  const { codes }: DeclaredPart = CONDITIONS[part];
  const found = codes[code];
  if (found === undefined) throw new Error(`the condition ${part} ${code} is not declared`);
  return found;
};

/** The condition's sentence with its facts. */
export const sentenceOf = (part: Part, code: string, facts: ConditionFacts): string =>
  declared(part, code).message.replace(/\{(\w+)\}/g, (_, name: string) => `${facts[name] ?? 'unknown'}`);
