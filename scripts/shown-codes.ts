/**
 * Refuses each place of `src` where a code stands in a text for people: `bun run check:codes`. A code is a value whose
 * type names the words of a document, such as `"port-closed" | "no-answer"`; a text is of type `string`. What turns one
 * into the other is a function or a table.
 */
import { relative } from "node:path";
import ts from "typescript-5";

/** Words of documents: with hyphens, in camel case, or in capitals; not the settings, which are typed as they are. */
const CODE = /^[a-z0-9]+(-[a-z0-9]+)+$|^[a-z]+[A-Z]\w*$|^(?!(SIXSCOPE|NODE)_)[A-Z]+(_[A-Z]+)+$/;

/** Names of commands, which are typed too. */
const COMMANDS = ["my-ip"];

/** Properties and attributes that people read. */
const SHOWN =
  /^(text|headline|evidence|advice|message|words|note|title|label|placeholder|alt|aria-label)$/;

/** Functions that put their arguments into a text. */
const INTO_TEXT = /^(listText|sentence|plural|capitalized|numberText|shareText)$/;

/** The reference of the API, whose readers write programs, and what only logs and other programs read. */
const FOR_PROGRAMS = /^src\/(api\/openapi|api\/examples|server\/metrics)/;

const { fileNames, options } = ts.getParsedCommandLineOfConfigFile(
  "tsconfig.json",
  {},
  {
    ...ts.sys,
    onUnRecoverableConfigFileDiagnostic() {},
  },
) as ts.ParsedCommandLine;
const isOurs = (file: string) => /^src\//.test(relative(".", file));
const program = ts.createProgram(fileNames.filter(isOurs), { ...options, noEmit: true });
const checker = program.getTypeChecker();

/** The codes that an expression can be. */
function codesOf(type: ts.Type): readonly string[] {
  if (type.isUnion()) return type.types.flatMap(codesOf);
  if (!type.isStringLiteral()) return [];
  return CODE.test(type.value) && !COMMANDS.includes(type.value) ? [type.value] : [];
}

/** The codes in an expression, or in the items of one. */
function codesIn(node: ts.Expression): readonly string[] {
  if (ts.isStringLiteralLike(node)) return [];
  if (ts.isParenthesizedExpression(node)) return codesIn(node.expression);
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse].flatMap(codesIn);
  if (ts.isBinaryExpression(node)) {
    const isChoice = ["||", "??"].includes(node.operatorToken.getText());
    return [...(isChoice ? [node.left] : []), node.right].flatMap(codesIn);
  }
  const type = checker.getTypeAtLocation(node);
  const item = checker.isArrayType(type) ? checker.getTypeArguments(type as ts.TypeReference) : [];
  return [type, ...item].flatMap(codesOf);
}

/** The expressions of a node that people read. */
function shownIn(node: ts.Node): readonly ts.Expression[] {
  if (ts.isJsxExpression(node) && node.expression) {
    const { parent } = node;
    const isShown = !ts.isJsxAttribute(parent) || SHOWN.test(parent.name.getText());
    return isShown ? [node.expression] : [];
  }
  if (ts.isTemplateExpression(node) && !ts.isElementAccessExpression(node.parent))
    return node.templateSpans.map(({ expression }) => expression);
  if (ts.isPropertyAssignment(node) && SHOWN.test(node.name.getText())) return [node.initializer];
  if (ts.isCallExpression(node) && INTO_TEXT.test(node.expression.getText())) return node.arguments;
  return [];
}

let found = 0;
for (const file of program.getSourceFiles()) {
  const path = relative(".", file.fileName);
  if (!isOurs(path) || FOR_PROGRAMS.test(path)) continue;
  const visit = (node: ts.Node): void => {
    for (const shown of shownIn(node)) {
      const codes = codesIn(shown);
      if (codes.length === 0) continue;
      const { line } = file.getLineAndCharacterOfPosition(shown.getStart());
      console.error(
        `${path}:${line + 1}: ${shown.getText()} can be the code ${codes[0]}; write it in words`,
      );
      found++;
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
}
process.exit(found > 0 ? 1 : 0);
