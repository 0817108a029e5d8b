// The evaluation of alert rules agrees with Prometheus' own.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { needsProgram } from '#test/support/chain/requirements.ts';
import { ALERT_RULES, firing, isEvaluated, RULES_FILE } from './alert-rules.ts';
import { readFigures } from './figures.ts';

/** Each series with its value before and now. */
const SERIES: readonly (readonly [series: string, before: number, now: number])[] = [
  ['relay_part_up{part="event_log"}', 1, 0],
  ['relay_part_problem{part="event_log",reason="damaged"}', 0, 1],
  ['relay_part_problem{part="event_log",reason="damaged_events"}', 1, 1],
  ['relay_event_log_damaged_events', 0, 2],
  ['relay_part_up{part="signing_key"}', 1, 1],
  ['relay_part_up{part="facilitator"}', 1, 0],
  ['relay_part_problem{part="facilitator",reason="login_refused"}', 0, 1],
  ['relay_part_problem{part="chain",reason="not_compared"}', 0, 1],
  ['relay_checkpoint_wait_seconds', 0, 61],
  ['relay_projection_lag_seconds', 0, 30],
  ['relay_internal_errors_total', 4, 5],
  ['relay_settlements_total{outcome="unknown"}', 3, 3],
  ['relay_settlements_total{outcome="settled"}', 3, 9],
  ['relay_payments_open_oldest_seconds{state="refundable"}', 0, 86_401],
  ['relay_payments_open_oldest_seconds{state="unknown"}', 0, 900],
];
const FIRE = [
  'RelayEventLogDown',
  'RelayEventsDamaged',
  'RelayNoCheckpoint',
  'RelayFacilitatorRefusesLogin',
  'RelayFacilitatorDown',
  'RelayRefundDue',
  'RelayNotReconciled',
  'RelayDefect',
];

const scraped = (column: 1 | 2) =>
  readFigures(
    SERIES.map((row) => {
      const [name = ''] = row[0].split('{');
      return `# HELP ${name} of a test\n# TYPE ${name} gauge\n${row[0]} ${row[column]}\n`;
    }).join(''),
  );

test('the rules that fire, by name', () => {
  assert.deepEqual(firing(scraped(2), scraped(1)), FIRE);
  assert.deepEqual(firing(scraped(1), scraped(1)), []);
  const skipped = ALERT_RULES.filter((rule) => !isEvaluated(rule)).map(({ name }) => name);
  assert.deepEqual(skipped, [
    'RelayEventLogNotScrubbed',
    'RelayDiskFillsUp',
    'RelayPaymentMissing',
    'RelayChargeCorrected',
    'RelayErrors',
    'RelayJobsFail',
    'RelayAppendsSlow',
  ]);
});

const promtool = needsProgram('promtool');
test('Prometheus reads the rules, and fires the same', promtool, () => {
  const folder = mkdtempSync(join(tmpdir(), 'relay-rules-'));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const expected = FIRE.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 }));
  const cases = file(
    'test.yml',
    JSON.stringify({
      rule_files: [RULES_FILE],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: SERIES.map(([series, before, now]) => ({ series, values: `${before} ${now}x20` })),
          promql_expr_test: [
            {
              expr: 'max by (alertname) (ALERTS{alertstate=~"firing|pending"})',
              eval_time: '8m',
              exp_samples: expected,
            },
          ],
        },
      ],
    }),
  );
  try {
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', cases], { encoding: 'utf8' });
    assert.equal(status, 0, stdout + stderr);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
