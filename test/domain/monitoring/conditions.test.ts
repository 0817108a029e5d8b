// Each condition of the service has its sentence, its metric, its alert and its row in the guide.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  CONDITIONS,
  type CodeOf,
  type DeclaredPart,
  type Part,
  sentenceOf,
} from '#src/domain/monitoring/conditions.ts';
import { Conditions } from '#src/usecases/process/condition.ts';
import { ALERT_RULES } from '#test/support/given/alert-rules.ts';
import { rootPath } from '#test/support/process/runtime.ts';
import { collectingLogger, manualClock } from '#test/support/world/fakes.ts';

const PARTS = Object.entries(CONDITIONS) as readonly (readonly [Part, DeclaredPart])[];
const ALL = PARTS.flatMap(([part, { codes }]) =>
  Object.entries(codes).map(([code, condition]) => ({ part, code, ...condition })),
);
const guideOf = (name: string) => readFileSync(`${rootPath}/src/${name}.md`, 'utf8');
const RUNBOOK = guideOf('RUNBOOK');
const labelOf = (part: string) => part.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

test('every condition is one sentence or more, for people, without a path, an address or a key', () => {
  for (const { part, code, message } of ALL) {
    const facts = Object.fromEntries(
      [...message.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name ?? '', 'X1']),
    );
    const sentence = sentenceOf(part, code, facts);
    assert.match(sentence, /^[A-Z].*\.(?:X1)?$/, `${part} ${code}`);
    assert.doesNotMatch(message, /\{(?:file|path|url|places|key)\}|https?:|\/\w+\//, `${part} ${code}`);
  }
});

test('every condition is logged at its level when it begins, and once more when it is over', () => {
  for (const { part, code, level } of ALL) {
    const logger = collectingLogger();
    const conditions = new Conditions(manualClock(), logger);
    conditions.set(part, code as CodeOf<Part>);
    conditions.set(part, null);
    assert.deepEqual(
      logger.lines.map((line) => line.level),
      [level, 'info'],
      `${part} ${code}`,
    );
  }
});

test('every condition has an alert rule that fires for it, or the reason why none does', () => {
  for (const { part, code, alert } of ALL) {
    if (typeof alert !== 'string') {
      assert.ok(alert.none.length > 20, `${part} ${code}`);
      continue;
    }
    const rule = ALERT_RULES.find(({ name }) => name === alert);
    assert.ok(rule !== undefined, `${part} ${code}: ${alert} is no rule`);
    // A rule that selects reasons of this part selects this one.
    const selectors = [...rule.expression.matchAll(/relay_part_problem\{([^}]*)\}/g)].map(
      ([, labels = '']) => labels,
    );
    const ofPart = selectors.filter((labels) => matches(labels, 'part', labelOf(part)));
    for (const labels of ofPart) assert.ok(matches(labels, 'reason', code), `${alert}: ${part} ${code}`);
  }
});

/** Whether a selector's label matches the value; a label that it does not name matches. */
function matches(labels: string, label: string, value: string): boolean {
  const [, operator, pattern = ''] = new RegExp(`\\b${label}(=~?)"([^"]*)"`).exec(labels) ?? [];
  if (operator === undefined) return true;
  return operator === '=' ? pattern === value : new RegExp(`^(?:${pattern})$`).test(value);
}

test('runbook: every condition is in one row of one guide, as it is declared', () => {
  const rows = ALL.map(({ part, code, message, alert }) => {
    const text = message
      .replace(/(?<=[.\w])\{\w+\}/g, '')
      .replaceAll(/\{(\w+)\}/g, (_, name: string) => `‹${name}›`);
    const fires = typeof alert === 'string' ? `\`${alert}\`` : alert.none;
    return `| \`${labelOf(part)}\` | \`${code}\` | ${text} | ${fires} |`;
  });
  const table = ['| part | reason | meaning | alert |', '|---|---|---|---|', ...rows].join('\n');
  assert.ok(RUNBOOK.includes(`\n${table}\n`), `src/RUNBOOK.md lacks this table:\n${table}`);
  const guides = ['DEPLOYING', 'RUNBOOK', 'MONEY'].map((name) => guideOf(name)).join('');
  assert.equal(guides.match(/^\| part \| reason \|/gm)?.length, 1);
});

test('runbook: every alert rule has one row, with its severity and a first command', () => {
  const rows = [...RUNBOOK.matchAll(/^\| `(Relay\w+)` \| (\w+) \| `[^`|]+` \| .+ \|$/gm)].map(
    ([, name = '', severity]) => `${name} ${severity}`,
  );
  assert.deepEqual(rows.sort(), ALERT_RULES.map(({ name, severity }) => `${name} ${severity}`).sort());
});
