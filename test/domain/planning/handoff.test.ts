import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Value } from '@sinclair/typebox/value';
import {
  HANDOFF_ACTIONS,
  HandoffAction,
  HandoffActions,
  handoffWarnings,
  makePackage,
  missingMembers,
} from '#src/domain/planning/handoff.ts';

type Type = HandoffAction['type'];
const members = ['description', 'text', 'selector'] as const;

/** By type: the smallest sets of members that are enough. */
const ENOUGH: Readonly<Record<Type, readonly string[]>> = {
  instruction: ['description', 'text'],
  navigate: [''],
  click: ['description', 'selector', 'text'],
  type: ['description text', 'selector text'],
  select: ['description text', 'selector text'],
  submit: [''],
  wait_for_text: ['text'],
  screenshot: [''],
  extract: ['description', 'selector'],
  verify: ['description', 'text'],
};

for (const type of Object.keys(ENOUGH) as Type[]) {
  test(`handoff: ${type} is taken with ${ENOUGH[type].map((set) => set || 'nothing').join(', or ')}, and with no less`, () => {
    for (let bits = 0; bits < 8; bits++) {
      const given = members.filter((_, at) => bits & (1 << at));
      const action: HandoffAction = { type, ...Object.fromEntries(given.map((name) => [name, 'x'])) };
      const enough = ENOUGH[type].some((set) =>
        set.split(' ').every((name) => name === '' || name in action),
      );
      assert.equal(Value.Check(HandoffAction, action), true);
      assert.equal(missingMembers([action]).length === 0, enough, `${type} with ${given}`);
    }
  });
}

test('handoff: the types of the schema are those for which required members are stated', () => {
  const types = HandoffAction.properties.type.anyOf.map((option) => option.const);
  assert.deepEqual([...types].sort(), Object.keys(HANDOFF_ACTIONS).sort());
  assert.deepEqual([...types].sort(), Object.keys(ENOUGH).sort());
});

test('handoff: a missing member is reported at its action, without the texts of the caller', () => {
  const faults = missingMembers([
    { type: 'navigate' },
    { type: 'type', description: 'secret' },
    { type: 'select' },
  ]);
  assert.deepEqual(faults, [
    { path: '/1', message: 'An action of type type needs text' },
    { path: '/2', message: 'An action of type select needs text' },
    { path: '/2', message: 'An action of type select needs selector or description' },
  ]);
});

test('handoff: 1 to 12 actions, texts of 1 to 2000 characters, selectors of 1 to 500, nothing else', () => {
  const good = { type: 'verify', text: 'x' };
  const cases: readonly [unknown, boolean][] = [
    [[good], true],
    [[], false],
    [Array(12).fill(good), true],
    [Array(13).fill(good), false],
    [good, false],
    [undefined, false],
    [[{ ...good, text: 'x'.repeat(2000) }], true],
    [[{ ...good, text: 'x'.repeat(2001) }], false],
    [[{ ...good, description: 'x'.repeat(2000) }], true],
    [[{ ...good, description: 'x'.repeat(2001) }], false],
    [[{ ...good, selector: 'x'.repeat(500) }], true],
    [[{ ...good, selector: 'x'.repeat(501) }], false],
    [[{ ...good, text: '' }], false],
    [[{ ...good, selector: '' }], false],
    [[{ ...good, url: 'https://a.example/' }], false],
    [[{ ...good, type: 'Verify' }], false],
    [[{ text: 'x' }], false],
    [[{ ...good, text: null }], false],
  ];
  for (const [actions, taken] of cases) {
    assert.equal(Value.Check(HandoffActions, actions), taken, JSON.stringify(actions)?.slice(0, 80));
  }
});

test('handoff: a package numbers its steps from 1 and says that nothing was executed or paid', () => {
  const facts = {
    id: 'hnd_0000000000000000000000000a',
    createdAt: '2026-01-01T00:00:00.000Z',
    expiresAt: '2026-01-01T01:00:00.000Z',
    target: { url: 'https://a.example/', origin: 'https://a.example', hostname: 'a.example', pathname: '/' },
    returnUrl: null,
    idempotencyKey: 'k',
  };
  const made = makePackage(facts, [{ type: 'navigate' }, { type: 'verify', text: 'Paid' }]);
  assert.deepEqual(made, {
    ...facts,
    status: 'ready_for_external_browser_agent',
    executionModel: 'handoff-only',
    paid: false,
    actions: [
      { step: 1, type: 'navigate' },
      { step: 2, type: 'verify', text: 'Paid' },
    ],
  });
});

test('handoff: each warning comes for its own reason', () => {
  const codes = (type: Type, key: string | null) =>
    handoffWarnings([{ type: 'navigate' }, { type, text: 'x' }], key).map(({ code }) => code);
  assert.deepEqual(codes('verify', 'k'), []);
  assert.deepEqual(codes('verify', null), ['idempotency_key_missing']);
  assert.deepEqual(codes('type', 'k'), ['typed_text_may_be_secret']);
  assert.deepEqual(codes('type', null), ['idempotency_key_missing', 'typed_text_may_be_secret']);
});
