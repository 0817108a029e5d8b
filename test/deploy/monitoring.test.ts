// The alert rules and the dashboard of deploy/: Prometheus accepts them, and they name what the service exposes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { needsProgram } from '#test/support/chain/requirements.ts';
import { ALERT_RULES } from '#test/support/given/alert-rules.ts';
import { everyFigure } from '#test/support/given/every-figure.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { testFolder } from '#test/support/process/test-folder.ts';

const folder = testFolder('monitoring');
const deploy = (file: string) => `${rootPath}/deploy/${file}`;
const read = (file: string) => readFileSync(deploy(file), 'utf8');

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] };
type Dashboard = { readonly panels: readonly (Panel & { readonly id: number })[] };
const DASHBOARD: Dashboard = JSON.parse(read('grafana/relay.json'));
const SHOWN = DASHBOARD.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
const EXPRESSIONS = [...ALERT_RULES.map(({ expression }) => expression), ...SHOWN];

/** Names in an expression, without what a histogram adds. */
const metricsIn = (expression: string): readonly string[] =>
  (expression.match(/\b(?:relay|http|process)_[a-z_]+/g) ?? []).map((name) =>
    name.replace(/_(bucket|count)$/, ''),
  );

test('monitoring: rules and panels name metrics that the service exposes, with their labels', async () => {
  const text = await everyFigure();
  const families = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  const unknown = EXPRESSIONS.flatMap(metricsIn).filter((name) => !families.includes(name));
  assert.deepEqual(unknown, []);
  for (const expression of EXPRESSIONS)
    for (const [, metric = '', label = ''] of expression.matchAll(/\b(relay_[a-z_]+)\{(\w+="\w+")\}/g))
      assert.ok(text.includes(`${metric}{${label}}`), `${metric}{${label}}`);
  // What Prometheus itself adds.
  const others = ['le', 'job', 'instance'];
  for (const expression of EXPRESSIONS)
    for (const [, labels = ''] of expression.matchAll(/\bby \(([\w, ]+)\)/g))
      for (const label of labels.split(', ').filter((name) => !others.includes(name)))
        assert.match(text, new RegExp(`[{,]${label}="|^# TYPE relay_part_problem `, 'm'), expression);
});

test('monitoring: every metric is on the dashboard', async () => {
  const families = [...(await everyFigure()).matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  assert.ok(families.length >= 20, `${families.length} metrics`);
  const shown = new Set(SHOWN.flatMap(metricsIn));
  assert.deepEqual(
    families.filter((name) => !shown.has(name)),
    [],
  );
  assert.equal(new Set(DASHBOARD.panels.map(({ id }) => id)).size, DASHBOARD.panels.length);
});

type RuleTests = {
  readonly tests: readonly {
    readonly promql_expr_test: readonly { readonly expr: string; readonly exp_samples: readonly unknown[] }[];
  }[];
};

test('monitoring: each rule has a case in which it fires, and one in which it is quiet', () => {
  const { tests }: RuleTests = parse(read('prometheus/rules.test.yaml'));
  const cases = tests.flatMap(({ promql_expr_test }) =>
    promql_expr_test.map(({ expr, exp_samples }) => {
      const [, name = ''] = /alertname="(\w+)"/.exec(expr) ?? [];
      return `${name} ${exp_samples.length > 0 ? 'fires' : 'is quiet'}`;
    }),
  );
  assert.deepEqual(
    cases.sort(),
    ALERT_RULES.flatMap(({ name }) => [`${name} fires`, `${name} is quiet`]).sort(),
  );
});

describe('Prometheus', needsProgram('promtool'), () => {
  const promtool = (...args: string[]) => {
    const options = { cwd: deploy('prometheus'), encoding: 'utf8' } as const;
    const { status, stdout, stderr } = spawnSync('promtool', args, options);
    assert.equal(status, 0, stdout + stderr);
  };
  test('accepts the configuration and the rules', () => promtool('check', 'config', 'prometheus.yaml'));
  test('fires and is quiet as the cases state', () =>
    promtool('test', 'rules', 'rules.test.yaml', 'rules.week.test.yaml'));
  test('accepts the expressions of the dashboard', () => {
    const rules = SHOWN.map((expr, at) => ({
      record: `panel:${at}`,
      expr: expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', '.*'),
    }));
    const file = join(folder, 'dashboard.yaml');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    promtool('check', 'rules', file);
  });
});
