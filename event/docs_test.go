package event_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"perch/must"
)

// pageHead is the part of docs/events.md that is not made from the types.
const pageHead = `# Events

Everything that happens is published as an event. The admin API sends events as they happen
([GET /api/v1/events](operations.md#admin-api)):

    curl -N http://127.0.0.1:8004/api/v1/events

An event looks like this; the fields of its kind are in ` + "`data`" + `:

    {"seq":17,"at":"2026-07-27T18:30:00+02:00","robot":"a0b1c2d3e4f5","session":"...","kind":"heard","data":{"text":"hello"}}

Of a stranger (a robot nobody has adopted) only ` + "`robot_seen`, `robot_adopted` and `robot_forgotten`" + ` are published.
[The glossary](glossary.md) explains the words. A test of package ` + "`event`" + ` writes this page from the package's types.

## The envelope

| field | type | meaning |
|---|---|---|
`

// declaration describes a struct in the source of the package.
type declaration struct {
	name, doc, kind string
	fields          []field
}

type field struct{ json, typ, comment string }

// TestEventsPage compares docs/events.md with the page that eventsPage makes from the comments in event.go.
// PERCH_GOLDEN=rewrite writes the page.
func TestEventsPage(t *testing.T) {
	const page = "../docs/events.md"
	want := eventsPage(t, declarations(t))
	if os.Getenv("PERCH_GOLDEN") == "rewrite" {
		must.Succeed(t, os.WriteFile(page, []byte(want), 0o644))
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/events.md is not what the types say (%v); PERCH_GOLDEN=rewrite go test ./event writes it", err)
	}
}

func eventsPage(t *testing.T, all []declaration) string {
	var out strings.Builder
	out.WriteString(pageHead)
	index, events := []string{}, strings.Builder{}
	for _, d := range all {
		if d.name == "Envelope" {
			writeFields(t, &out, d)
			out.WriteString("| `kind` | text | name of the event |\n| `data` | object | the event's fields, see below |\n")
		}
		if d.kind == "" {
			continue
		}
		index = append(index, fmt.Sprintf("[`%s`](#%s)", d.kind, d.kind))
		text, found := strings.CutPrefix(d.doc, d.name+" is ")
		if !found {
			t.Errorf("the comment of %s does not begin with %q", d.name, d.name+" is ")
		}
		fmt.Fprintf(&events, "\n### %s\n\n%s%s\n", d.kind, strings.ToUpper(text[:1]), text[1:])
		if len(d.fields) > 0 {
			events.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
		}
		writeFields(t, &events, d)
	}
	if len(index) < 30 {
		t.Fatalf("only %d events were found", len(index))
	}
	fmt.Fprintf(&out, "\n## The events\n\n%s.\n%s", strings.Join(index, ", "), events.String())
	for _, d := range all {
		if text, found := strings.CutPrefix(d.doc, d.name+" are "); found && d.kind == "" {
			fmt.Fprintf(&out, "\n## %s\n\n%s%s\n\n| field | type | meaning |\n|---|---|---|\n", d.name, strings.ToUpper(text[:1]), text[1:])
			writeFields(t, &out, d)
		}
	}
	return out.String()
}

func writeFields(t *testing.T, out *strings.Builder, d declaration) {
	for _, f := range d.fields {
		if f.comment == "" {
			t.Errorf("%s of %s has no comment", f.json, d.name)
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", f.json, f.typ, f.comment)
	}
}

// declarations returns the exported structs of event.go, which defines all events.
func declarations(t *testing.T) (all []declaration) {
	file := must.Value(parser.ParseFile(token.NewFileSet(), "event.go", nil, parser.ParseComments|parser.SkipObjectResolution))(t)
	kinds := map[string]string{}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.Name == "kind" && decl.Recv != nil {
				kinds[decl.Recv.List[0].Type.(*ast.Ident).Name] = returned(t, decl)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					if s, ok := spec.Type.(*ast.StructType); ok && spec.Name.IsExported() {
						all = append(all, declaration{name: spec.Name.Name, doc: oneLine(decl.Doc.Text()), fields: fieldsOf(t, s)})
					}
				}
			}
		}
	}
	for i := range all {
		all[i].kind = kinds[all[i].name]
		delete(kinds, all[i].name)
	}
	if len(kinds) > 0 {
		t.Errorf("these events are not structs: %v", kinds)
	}
	return all
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// returned returns the string in the method's return statement.
func returned(t *testing.T, decl *ast.FuncDecl) string {
	return must.Value(strconv.Unquote(decl.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value))(t)
}

// fieldsOf returns the fields of a struct that are part of its JSON.
func fieldsOf(t *testing.T, s *ast.StructType) (all []field) {
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := must.Value(strconv.Unquote(f.Tag.Value))(t)
		name, rest, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "-" {
			continue
		}
		typ := typeName(t, f.Type)
		if rest != "" {
			typ += ", optional"
		}
		all = append(all, field{name, typ, oneLine(cmp.Or(f.Comment.Text(), f.Doc.Text()))})
	}
	return all
}

// typeName returns the name of a field's type in docs/events.md.
func typeName(t *testing.T, e ast.Expr) string {
	switch source := types.ExprString(e); source {
	case "string":
		return "text"
	case "device.ID":
		return "robot id"
	case "int", "int64", "uint64", "float64":
		return "number"
	case "bool":
		return "true or false"
	case "*int", "*float64":
		return "number or null"
	case "*[3]int":
		return "three numbers"
	case "Feelings", "Morphs", "HeadPose":
		return "object, see [" + source + "](#" + strings.ToLower(source) + ")"
	case "*bool":
		return "true, false or null"
	case "time.Time":
		return "time (RFC 3339)"
	case "map[string]int64":
		return "object of numbers"
	case "json.RawMessage":
		return "object"
	default:
		t.Fatalf("no name for the type %s", source)
		return ""
	}
}
