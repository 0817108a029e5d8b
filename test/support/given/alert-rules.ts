// The alert rules of deploy/prometheus, evaluated against scraped metrics: what an operator's Prometheus would
// fire, without the time that each rule waits (`for`).
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { rootPath } from '#test/support/process/runtime.ts';
import type { Figures } from './figures.ts';

export type AlertRule = { readonly name: string; readonly expression: string; readonly severity: string };

/** The rules that ship in `deploy/`, for Prometheus. */
export const RULES_FILE = `${rootPath}/deploy/prometheus/rules.yaml`;

type RulesFile = {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly labels: { readonly severity: string };
    }[];
  }[];
};

const { groups }: RulesFile = parse(readFileSync(RULES_FILE, 'utf8'));

export const ALERT_RULES: readonly AlertRule[] = groups.flatMap(({ rules }) =>
  rules.map(({ alert, expr, labels }) => ({ name: alert, expression: expr, severity: labels.severity })),
);

/** `metric{label="value"} > 1`, of all series (`sum`, `max`), and of what was added since the earlier scrape (`increase`). */
const TERM =
  /^(?:(?:sum|max|min)\()?(?<increase>increase\()?(?<metric>[a-z_]+)(?:\{(?<labels>[^}]*)\})?(?:\[\d+m\])?\)*\s*(?<operator>==|>)\s*(?<limit>[\d.]+)$/;

export const isEvaluated = ({ expression }: AlertRule): boolean =>
  expression.split(' or ').every((term) => TERM.test(term));

/**
 * Names of the rules that fire. Rules over rates and times are not evaluated (`isEvaluated`). `before`: an earlier scrape, for
 * rules over an increase.
 */
export function firing(now: Figures, before: Figures): string[] {
  const fires = (term: string): boolean => {
    const { increase, metric = '', labels = '', operator, limit } = TERM.exec(term)?.groups ?? {};
    return now.labels(metric).some((series) => {
      if (!matches(series, labels)) return false;
      const base = increase === undefined ? 0 : (before.of(metric, series) ?? 0);
      const value = (now.of(metric, series) ?? 0) - base;
      return operator === '==' ? value === Number(limit) : value > Number(limit);
    });
  };
  return ALERT_RULES.filter(
    (rule) => isEvaluated(rule) && rule.expression.split(' or ').some((term) => fires(term)),
  ).map(({ name }) => name);
}

function matches(series: Readonly<Record<string, string>>, labels: string): boolean {
  return [...labels.matchAll(/(\w+)(=~|=)"([^"]*)"/g)].every(([, name = '', operator, value = '']) =>
    operator === '=' ? series[name] === value : new RegExp(`^(?:${value})$`).test(series[name] ?? ''),
  );
}
