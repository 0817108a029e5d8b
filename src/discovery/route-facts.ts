// The form in which a route is told.

export type RouteTag =
  | 'execution'
  | 'policy'
  | 'records'
  | 'verification'
  | 'transparency'
  | 'planning'
  | 'discovery'
  | 'service';

export type RouteFacts = {
  readonly method: 'GET' | 'POST';
  /** A parameter is a segment `:name`. */
  readonly path: string;
  readonly tag: RouteTag;
  readonly summary: string;
  readonly description: string;
  /** Charged where payment is enforced. */
  readonly paid: boolean;
  /** An operation of the interface description. Pages, well-known files and what operators ask for are not. */
  readonly listed: boolean;
};

type Told = Omit<RouteFacts, 'method' | 'path' | 'paid' | 'listed'>;

export const get = <P extends string>(path: P, told: Told) =>
  ({ method: 'GET', path, ...told, paid: false, listed: true }) as const;
export const post = <P extends string>(path: P, told: Told) =>
  ({ method: 'POST', path, ...told, paid: false, listed: true }) as const;
export const paid = <P extends string>(path: P, told: Told) =>
  ({ method: 'POST', path, ...told, paid: true, listed: true }) as const;
/** Not in the interface description. */
export const aside = <P extends string>(path: P, tag: RouteTag, summary: string) =>
  ({ method: 'GET', path, tag, summary, description: summary, paid: false, listed: false }) as const;

/** As RFC 6570 and OpenAPI write it: `:id` is `{id}`, and the rest of a path `{+path}`. */
export function pathTemplate(path: string): string {
  return path.replace(/:([A-Za-z]+)/g, '{$1}').replace(/\*$/, '{+path}');
}
