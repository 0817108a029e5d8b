// Reads the JUnit report of a test run: the form that `bun test` and `deno test` have in common.

export type CaseResult = {
  /** The test's title; a suite's stands before it, as in `suite > test`. */
  readonly title: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
};

export function readJunit(xml: string): CaseResult[] {
  const found = [...xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)];
  const cases = found.map(([, attributes = '', content = '']): CaseResult => {
    const name = attribute(attributes, 'name');
    // Bun names the file apart and the suites here, the innermost first; Deno names the file here
    const suites = attribute(attributes, 'file') === '' ? '' : attribute(attributes, 'classname');
    return { title: suites === '' ? name : `${suites} > ${name}`, outcome: outcomeOf(content) };
  });
  return cases.filter((result) => !isSuite(result, cases));
}

const outcomeOf = (content: string): CaseResult['outcome'] =>
  /<(failure|error)\b/.test(content) ? 'failed' : /<skipped\b/.test(content) ? 'skipped' : 'passed';

/** Deno lists a suite beside its tests: no test of its own, save where it failed and none of them did. */
function isSuite({ title, outcome }: CaseResult, cases: readonly CaseResult[]): boolean {
  const inside = cases.filter((other) => other.title.startsWith(`${title} > `));
  if (inside.length === 0) return false;
  return outcome !== 'failed' || inside.some((other) => other.outcome === 'failed');
}

/** The same for both runtimes, whatever the order in which they name suites. */
export const titleKey = (title: string): string => title.split(' > ').sort().join(' > ');

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

function attribute(attributes: string, name: string): string {
  const text = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '';
  return text.replace(/&(?:#(\d+)|(\w+));/g, (entity, code, entityName) =>
    code === undefined ? (ENTITIES[entityName] ?? entity) : String.fromCodePoint(Number(code)),
  );
}
