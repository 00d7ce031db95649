import type { estypes } from '@elastic/elasticsearch';
import { z } from 'zod';

/** A field of a package: a member of its entry, a column of datasets, and a field of the indices. */
interface Field {
  /** The member, in responses. It is optional if the schema is. */
  schema: z.ZodType;
  /** In the index of packages and, unless the field is volatile, in that of changes. `mappings/` has those of `name`. */
  mapping?: estypes.MappingProperty;
  /** The column, if it has another name. */
  column?: string;
  /** Maximum length of a text, in UTF-8 bytes. Optional fields without it are whole numbers, of which an empty one is 0. */
  maxBytes?: number;
  /** Of an optional field: the value of packages without one if others of the list have one. Without it, they lack the member. */
  default?: number;
  /** Whether another value alone is no change. `/changes` omits the field. */
  isVolatile?: true;
}

/**
 * Everything that differs between the fields of a package. A snapshot has an optional field if any package of its list has a value;
 * an empty text is no value.
 */
export const FIELDS = {
  /** The position in a list without numbers; then it is not compared. */
  no: { column: 'package_no', schema: z.int().min(1), mapping: { type: 'long', index: false } },
  name: { maxBytes: 512, schema: z.string().min(1) },
  version: { maxBytes: 256, schema: z.string().min(1), mapping: { type: 'keyword', index: false } },
  /** A response holds up to 500 of them. */
  url: {
    maxBytes: 2048,
    // As in the dataset: URLs that browsers accept (WHATWG) may contain characters that `format: uri` forbids.
    schema: z.string().regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\//),
    mapping: { type: 'keyword', index: false, doc_values: false },
  },
  weight: {
    schema: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'Such as downloads; only if the dataset has weights.' }),
    mapping: { type: 'long' },
    default: 0,
    isVolatile: true,
  },
} as const satisfies Record<string, Field>;

type FieldName = keyof typeof FIELDS;
type Schemas = { [Name in FieldName]: (typeof FIELDS)[Name]['schema'] };
type VolatileField = {
  [Name in FieldName]: (typeof FIELDS)[Name] extends { isVolatile: true } ? Name : never;
}[FieldName];
export type OptionalField = {
  [Name in FieldName]: Schemas[Name] extends z.ZodOptional ? Name : never;
}[FieldName];

/** A package as the API returns it, without `rank`. */
export type PackageEntry = z.infer<z.ZodObject<Schemas>>;

const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

export const COMPARED_FIELDS = FIELD_NAMES.filter((name) => !isVolatile(name));

/** In the order that entries have them, after the other fields: volatile ones last, so that a comparison can cut them off. */
export const OPTIONAL_FIELDS = [...COMPARED_FIELDS, ...FIELD_NAMES.filter(isVolatile)].filter(
  (name): name is OptionalField => FIELDS[name].schema instanceof z.ZodOptional,
);

/** The schemas of an entry's members. */
export const ENTRY_SCHEMAS = recordOf(FIELD_NAMES, (name) => FIELDS[name].schema) as Schemas;

/** The definition of a field. */
export function fieldOf(name: FieldName): Field {
  return FIELDS[name];
}

/** Whether another value alone is no change. */
export function isVolatile(name: FieldName): boolean {
  return fieldOf(name).isVolatile === true;
}

/** The column of a field, which JSON lines have as a member. */
export function columnOf(name: FieldName): string {
  return fieldOf(name).column ?? name;
}

/** The compared members of an entry, or of its schemas. */
export function comparedPart<T extends PackageEntry | Schemas>(members: T): Omit<T, VolatileField> {
  return recordOf(COMPARED_FIELDS, (name) => members[name]) as Omit<T, VolatileField>;
}

/** Sets the optional fields that have a value. @param item its other members are set. */
export function withOptional<T extends Partial<Record<OptionalField, unknown>>>(
  item: T,
  valueOf: (field: OptionalField, index: number) => unknown,
): T {
  const members: Partial<Record<OptionalField, unknown>> = item;
  OPTIONAL_FIELDS.forEach((field, i) => {
    const value = valueOf(field, i);
    if (value !== undefined) members[field] = value;
  });
  return item;
}

/** The mappings of the fields in an index, except that of `name`. @param content of the index. */
export function fieldMappings(content: 'packages' | 'changes'): Record<string, estypes.MappingProperty> {
  const names = content === 'packages' ? FIELD_NAMES : COMPARED_FIELDS;
  const mapped = names.filter((name) => name !== 'name');
  return recordOf(mapped, (name) => fieldOf(name).mapping as estypes.MappingProperty);
}

function recordOf<T>(names: readonly FieldName[], valueOf: (name: FieldName) => T): Record<string, T> {
  return Object.fromEntries(names.map((name) => [name, valueOf(name)]));
}
