// The names that a source text declares: those that it exports, those that live beyond one line, and the
// discriminators of its unions.
import assert from 'node:assert/strict';
import {
  type BindingPattern,
  type Node,
  type ParamPattern,
  parseSync,
  type TSType,
  Visitor,
  type VisitorObject,
} from 'oxc-parser';

function visit(source: string, visitor: VisitorObject): void {
  const { program, errors } = parseSync('source.ts', source);
  assert.deepEqual(errors, []);
  new Visitor(visitor).visit(program);
}

/** The names that a pattern binds. */
function bound(pattern: BindingPattern | ParamPattern | null): readonly string[] {
  if (pattern === null) return [];
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name];
    case 'ObjectPattern':
      return pattern.properties.flatMap((part) =>
        bound(part.type === 'RestElement' ? part.argument : part.value),
      );
    case 'ArrayPattern':
      return pattern.elements.flatMap((part) => bound(part?.type === 'RestElement' ? part.argument : part));
    case 'AssignmentPattern':
      return bound(pattern.left);
    case 'RestElement':
      return bound(pattern.argument);
    case 'TSParameterProperty':
      return bound(pattern.parameter);
  }
}

/** In their order. Names that are exported again under `export { … }` are of where they are declared. */
export function exportedNames(source: string): readonly string[] {
  const names: string[] = [];
  visit(source, {
    ExportNamedDeclaration({ declaration }) {
      if (declaration?.type === 'VariableDeclaration')
        names.push(...declaration.declarations.flatMap(({ id }) => bound(id)));
      else if (declaration !== null && 'id' in declaration && declaration.id?.type === 'Identifier')
        names.push(declaration.id.name);
    },
  });
  return names;
}

export type LongName = { readonly name: string; readonly line: number };

/** Variables and parameters whose scope has more than one line, with its first line. */
export function namesBeyondOneLine(source: string): readonly LongName[] {
  const found: LongName[] = [];
  const scopes: Node[] = [];
  const lineOf = (at: number) => source.slice(0, at).split('\n').length;
  const add = (names: readonly string[], scope: Node | undefined) => {
    if (scope === undefined || lineOf(scope.start) === lineOf(scope.end)) return;
    found.push(...names.map((name) => ({ name, line: lineOf(scope.start) })));
  };
  const enter = (node: Node) => void scopes.push(node);
  const leave = () => void scopes.pop();
  const inFunction = (node: Node & { readonly params: readonly ParamPattern[] }) => {
    enter(node);
    add(node.params.flatMap(bound), node);
  };
  visit(source, {
    Program: enter,
    'Program:exit': leave,
    BlockStatement: enter,
    'BlockStatement:exit': leave,
    ForStatement: enter,
    'ForStatement:exit': leave,
    ForOfStatement: enter,
    'ForOfStatement:exit': leave,
    ForInStatement: enter,
    'ForInStatement:exit': leave,
    FunctionDeclaration: inFunction,
    'FunctionDeclaration:exit': leave,
    FunctionExpression: inFunction,
    'FunctionExpression:exit': leave,
    ArrowFunctionExpression: inFunction,
    'ArrowFunctionExpression:exit': leave,
    VariableDeclarator: ({ id }) => add(bound(id), scopes.at(-1)),
    CatchClause: (clause) => add(bound(clause.param), clause),
  });
  return found;
}

export type Discriminated = { readonly type: string; readonly members: readonly string[] };

/** The unions of object types that have a member of constant texts in common, by the type that declares them. */
export function discriminators(source: string): readonly Discriminated[] {
  const found: Discriminated[] = [];
  let declared = '';
  visit(source, {
    TSTypeAliasDeclaration({ id }) {
      declared = id.name;
    },
    TSUnionType({ types }) {
      const objects = types.map(constantMembers).filter((members) => members.length > 0);
      const [first = [], ...others] = objects;
      const members = first.filter((name) => others.every((names) => names.includes(name)));
      if (others.length > 0 && members.length > 0) found.push({ type: declared, members });
    },
  });
  return found;
}

/** The members of an object type, or of the object types of an intersection, whose values are constant texts. */
function constantMembers(type: TSType): readonly string[] {
  if (type.type === 'TSParenthesizedType') return constantMembers(type.typeAnnotation);
  if (type.type === 'TSIntersectionType') return type.types.flatMap(constantMembers);
  if (type.type !== 'TSTypeLiteral') return [];
  return type.members.flatMap((member) => {
    if (member.type !== 'TSPropertySignature' || member.key.type !== 'Identifier') return [];
    const value = member.typeAnnotation?.typeAnnotation;
    const values = value?.type === 'TSUnionType' ? value.types : [value];
    const isText = values.every(
      (one) =>
        one?.type === 'TSLiteralType' && 'value' in one.literal && typeof one.literal.value === 'string',
    );
    return isText ? [member.key.name] : [];
  });
}
