import type { Context, Handler } from "hono";
import type { z } from "zod";
import type { AppEnv } from "./context.ts";
import type { ErrorCode } from "./error-table.ts";
import { type Parameters, parameterReader, type ValuesOf } from "./parameters.ts";
import { answerJson } from "./respond.ts";
import type { ValueOf } from "./schemas.ts";

/** Every path of the interface begins with it. */
export const BASE_PATH = "/api/v1";

/** What an endpoint says about itself: the interface document is made of it. */
interface Description<P extends Parameters, Schema extends z.ZodType> {
  /** Below BASE_PATH; the names of path parameters stand in braces. */
  readonly path: string;
  /** What a generated client calls it. */
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly needsKey: boolean;
  readonly parameters: P;
  /** Made when the interface document is, so that a start does not wait for it. */
  readonly response: () => Schema;
  readonly example: NoInfer<ValueOf<Schema>>;
  /** Those that it gives beside `COMMON_ERRORS` and, where it needs a key, UNAUTHORIZED. */
  readonly errors: readonly ErrorCode[];
}

/** A path of the interface: what it says about itself, and what answers there. */
export interface Endpoint<Dependencies> extends Description<Parameters, z.ZodType> {
  readonly createHandler: (dependencies: Dependencies) => Handler<AppEnv>;
}

/**
 * Defines an endpoint by its description and by what answers it.
 *
 * @param create takes the dependencies once, and returns what turns parameters into the response
 */
export function endpoint<P extends Parameters, Schema extends z.ZodType, Dependencies>(
  description: Description<P, Schema>,
  create: (
    dependencies: Dependencies,
  ) => (
    parameters: ValuesOf<P>,
    context: Context<AppEnv>,
  ) => ValueOf<Schema> | Promise<ValueOf<Schema>>,
): Endpoint<Dependencies> {
  return {
    ...description,
    createHandler(dependencies) {
      const read = parameterReader(description.parameters);
      const answer = create(dependencies);
      return (context) => {
        const body = answer(read(context), context);
        // An answer that is there already shall not wait for a promise.
        return body instanceof Promise
          ? body.then((value) => answerJson(context, value))
          : answerJson(context, body);
      };
    },
  };
}
