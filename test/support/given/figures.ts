// Prometheus' text format, read as strictly as a test needs: families with help and type, series by their labels.
import assert from 'node:assert/strict';
import type { PaymentFigures } from '#src/ports/telemetry.ts';

export type Figures = {
  /** The series' value; null where there is none. `labels`: as written, in any order. */
  of(name: string, labels?: Readonly<Record<string, string>>): number | null;
  /** Label sets of all series of this name. */
  labels(name: string): readonly Readonly<Record<string, string>>[];
  /** By name: its type. */
  readonly types: ReadonlyMap<string, string>;
  readonly lines: number;
};

const SERIES = /^([a-z_]+)(?:\{((?:[a-z_]+="[^"\\]*",?)+)\})? (-?\d[\d.e+-]*)$/;

export function readFigures(text: string): Figures {
  const types = new Map<string, string>();
  const helped = new Set<string>();
  const series = new Map<string, number>();
  const lines = text.split('\n').filter((line) => line !== '');
  for (const line of lines) {
    const [mark, kind, name = '', ...rest] = line.split(' ');
    if (mark === '#') {
      if (kind === 'HELP') helped.add(name);
      else types.set(name, rest.join(' '));
      continue;
    }
    const [, of = '', labels = '', value] = SERIES.exec(line) ?? assert.fail(`not a series: ${line}`);
    const family = types.has(of) ? of : of.replace(/_(bucket|sum|count)$/, '');
    assert.ok(types.has(family) && helped.has(family), `${of} has neither type nor help`);
    const key = keyOf(
      of,
      Object.fromEntries([...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, k, v]) => [k, v])),
    );
    assert.ok(!series.has(key), `twice: ${key}`);
    series.set(key, Number(value));
  }
  return {
    of: (name, labels = {}) => series.get(keyOf(name, labels)) ?? null,
    labels: (name) =>
      [...series.keys()]
        .map((key) => JSON.parse(key))
        .flatMap(([of, entries]) => (of === name ? [Object.fromEntries(entries)] : [])),
    types,
    lines: lines.length,
  };
}

const keyOf = (name: string, labels: Readonly<Record<string, string>>) =>
  JSON.stringify([name, Object.entries(labels).sort()]);

const none = { payments: 0, units: 0, oldestSeconds: 0 };

/** A served payment, one that is not on the chain, and one of an hour that is to be refunded. */
export const PAYMENT_FIGURES: PaymentFigures = {
  units: {
    charged: 9000,
    served: 6000,
    refunded: 0,
    open: 3000,
    missing: 3000,
    corrected: 0,
    received: 6001,
    unattributed: 1,
  },
  balanced: true,
  differenceUnits: 0,
  open: {
    unserved: none,
    refundable: { payments: 1, units: 3000, oldestSeconds: 3600 },
    refunding: none,
    unknown: none,
    missing: { payments: 1, units: 3000, oldestSeconds: 60 },
  },
  reconciled: { block: 1060, timeSeconds: 1_767_323_165 },
};
