// A style sheet that is imported as text, for a constructable sheet.
declare module "*.css" {
  const text: string;
  export default text;
}
