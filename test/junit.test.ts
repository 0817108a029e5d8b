import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readJunit, titleKey } from './junit.ts';

const BUN = `<testsuites name="bun test" tests="5">
  <testsuite name="test/a.test.ts" file="test/a.test.ts">
    <testcase name="one &lt;1&gt;" classname="" time="0" file="test/a.test.ts" line="3" assertions="0" />
    <testcase name="two" classname="" time="0" file="test/a.test.ts" line="4"><skipped /></testcase>
    <testcase name="three" classname="inner &gt; outer" file="test/a.test.ts" line="5" />
    <testcase name="four" classname="outer" file="test/a.test.ts" line="6">
      <failure type="AssertionError" message="a &amp; b&#10;">x</failure>
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
    <testcase name="outer &gt; four" classname="ext:deno_node/testing.ts"><failure message="x">x</failure></testcase>
  </testsuite></testsuites>`;

const rows = (xml: string) => readJunit(xml).map(({ title, outcome }) => `${outcome} ${titleKey(title)}`);

test('junit: both reports of the same tests read the same', () => {
  const expected = ['passed one <1>', 'skipped two', 'passed inner > outer > three', 'failed four > outer'];
  assert.deepEqual(rows(BUN), expected);
  assert.deepEqual(rows(DENO), expected);
});

test('junit: a suite that failed by itself stays, as its hooks may have', () => {
  const suite = '<testcase name="outer" classname="./a"><failure message="hook">x</failure></testcase>';
  const inside = '<testcase name="outer &gt; one" classname="ext"></testcase>';
  assert.deepEqual(rows(suite + inside), ['failed outer', 'passed one > outer']);
});

test('junit: no report, no tests', () => assert.deepEqual(readJunit(''), []));
