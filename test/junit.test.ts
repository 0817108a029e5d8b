import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJunit } from './junit.ts';

const BUN = `<testsuites name="bun test" tests="5">
  <testsuite name="test/a.test.ts" file="test/a.test.ts">
    <testcase name="one &lt;1&gt;" classname="" time="0" file="test/a.test.ts" line="3" assertions="0" />
    <testcase name="two" classname="" time="0" file="test/a.test.ts" line="4"><skipped /></testcase>
    <testcase name="three" classname="inner &gt; outer" file="test/a.test.ts" line="5" />
    <testcase name="four" classname="outer" file="test/a.test.ts" line="6">
      <failure type="AssertionError" message="a &amp; b&#10;">a &amp; b&#10;</failure>
    </testcase>
  </testsuite></testsuites>`;
const DENO = `<testsuites name="deno test" tests="5">
  <testsuite name="./test/a.test.ts">
    <testcase name="one &lt;1&gt;" classname="./test/a.test.ts" time="0.001" line="3" col="1">
    </testcase>
    <testcase name="two" classname="./test/a.test.ts" line="4" col="1">
      <skipped/>
    </testcase>
    <testcase name="outer" classname="./test/a.test.ts"><failure message="1 test step failed">…</failure></testcase>
  </testsuite>
  <testsuite name="ext:deno_node/testing.ts">
    <testcase name="outer &gt; inner" classname="ext:deno_node/testing.ts"></testcase>
    <testcase name="outer &gt; inner &gt; three" classname="ext:deno_node/testing.ts"></testcase>
    <testcase name="outer &gt; four" classname="ext:deno_node/testing.ts"><failure message="x">a &amp; b
</failure></testcase>
  </testsuite></testsuites>`;

/** Suites in one order: Bun lists the innermost first, Deno the outermost. */
const titleKey = (title: string) => title.split(' > ').sort().join(' > ');
const rows = (xml: string) =>
  readJunit(xml).map(({ title, file, outcome }) => `${outcome} ${file} ${titleKey(title)}`);

test('junit: the reports of Bun and Deno on the same tests read the same', () => {
  const expected = [
    'passed test/a.test.ts one <1>',
    'skipped test/a.test.ts two',
    'passed test/a.test.ts inner > outer > three',
    'failed test/a.test.ts four > outer',
  ];
  assert.deepEqual(rows(BUN), expected);
  assert.deepEqual(rows(DENO), expected);
  for (const xml of [BUN, DENO])
    assert.deepEqual(
      readJunit(xml).map(({ failure }) => failure),
      ['', '', '', 'a & b'],
    );
});

test('junit: a suite whose hooks failed is reported, its tests too', () => {
  const suite = '<testcase name="outer" classname="./a"><failure message="hook">x</failure></testcase>';
  const inside = '<testcase name="outer &gt; one" classname="ext:x"></testcase>';
  assert.deepEqual(rows(suite + inside), ['failed a outer', 'passed a one > outer']);
});

test('junit: an empty report has no tests', () => assert.deepEqual(readJunit(''), []));
