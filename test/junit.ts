// Reads the JUnit report of a test run: the form that `bun test` and `deno test` have in common.

export type CaseResult = {
  /** The test's title, after its suite's as in `suite > test`. */
  readonly title: string;
  /** Path of the test file from the root; empty if the report does not name it. */
  readonly file: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Text of the error, with its stack; empty if it did not fail. */
  readonly failure: string;
};

export function readJunit(xml: string): CaseResult[] {
  const found = [...xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)];
  const cases = found.map(([, attributes = '', content = '']): CaseResult => {
    const name = attribute(attributes, 'name');
    const file = attribute(attributes, 'file');
    const group = attribute(attributes, 'classname');
    // Bun has the file in an attribute of its own and the suites in `classname`; Deno has the file in `classname`,
    // except for steps of a suite, which carry the name of Deno's own module
    const ended = { outcome: outcomeOf(content), failure: failureIn(content) };
    if (file === '') return { title: name, file: fileOf(group), ...ended };
    return { title: group === '' ? name : `${group} > ${name}`, file, ...ended };
  });
  const named = cases.map((result) =>
    result.file === '' ? { ...result, file: suiteFile(result, cases) } : result,
  );
  return named.filter((result) => !isSuite(result, named));
}

const fileOf = (path: string): string => (path.startsWith('ext:') ? '' : path.replace(/^\.\//, ''));

function suiteFile({ title }: CaseResult, cases: readonly CaseResult[]): string {
  return cases.find(({ title: suite, file }) => file !== '' && title.startsWith(`${suite} > `))?.file ?? '';
}

const outcomeOf = (content: string): CaseResult['outcome'] =>
  /<(failure|error)\b/.test(content) ? 'failed' : /<skipped\b/.test(content) ? 'skipped' : 'passed';

const failureIn = (content: string): string =>
  unescaped(/<(?:failure|error)\b[^>]*>([\s\S]*?)<\/(?:failure|error)>/.exec(content)?.[1] ?? '').trimEnd();

/** Deno lists a suite beside its tests: it is no test of its own, unless it failed and none of its tests did. */
function isSuite({ title, file, outcome }: CaseResult, cases: readonly CaseResult[]): boolean {
  const inside = cases.filter((other) => other.file === file && other.title.startsWith(`${title} > `));
  if (inside.length === 0) return false;
  return outcome !== 'failed' || inside.some((other) => other.outcome === 'failed');
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function attribute(attributes: string, name: string): string {
  return unescaped(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '');
}

function unescaped(text: string): string {
  return text.replace(/&(?:#(\d+)|(\w+));/g, (entity, code, entityName) =>
    code === undefined ? (ENTITIES[entityName] ?? entity) : String.fromCodePoint(Number(code)),
  );
}
