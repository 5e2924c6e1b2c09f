package language

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pageAsks are the packages that answer the page's requests. Others answer programs
// and robots.
func pageAsks() []string {
	return []string{"gateway/admin", "gateway/door", "gateway/web", "gateway/robot", "ota", "ota/espimage", "store", "store/archive",
		"cmd/perch/appliance"}
}

// programsMeet are the words of refusals that no owner meets in the page by using it:
// what it asks for is well formed, and it does not ask for everything.
func programsMeet() map[string]string {
	all := map[string]string{}
	for why, words := range map[string]string{
		"the page is not even shown":    "unknown_host foreign_origin not_local no_key_set not_ingress unknown_file",
		"the page does not write so":    "wrong_method bad_level bad_limit bad_restart bad_robot_id bad_conversation no_session",
		"programs ask for it":           "being_recorded no_address other_client unhealthy unknown_gesture offline robot_busy wrong_sha256 bad_sha256 bad_url not_fetched",
		"programs do it, by a door":     "no_skill skill_not_exposed skills_busy too_many_",
		"characters are kept by perch":  "bad_character_id bad_manifest character_stays",
		"robots send pictures":          "bad_picture picture_too_large one_at_a_time too_many_pictures too_slow",
		"robots check in and fetch":     "no_device_id wrong_token too_many_strangers no_such_sound bad_ticket bad_host no_origin",
		"files for the robot's screens": "not_assets bad_table bad_index missing_file assets_full unknown_asset",
	} {
		for word := range strings.FieldsSeq(words) {
			all[word] = why
		}
	}
	return all
}

// TestRefusalsHaveWords: the page has a sentence for each refusal that its requests may
// meet, or it is one of those that only programs do.
func TestRefusalsHaveWords(t *testing.T) {
	sent := map[string]string{}
	for _, dir := range pageAsks() {
		maps.Copy(sent, refusalsOf(t, dir))
	}
	if len(sent) < 100 {
		t.Fatalf("only %d refusals were found: %v", len(sent), slices.Sorted(maps.Keys(sent)))
	}
	holds(t, "refusals", sent, programsMeet())
	english := pageWords(t, English)
	for _, tag := range All() {
		own := pageWords(t, tag)
		for _, key := range english.keys() {
			colon := func(w *Words) bool {
				return strings.HasSuffix(plain(w, key), ":") || strings.HasSuffix(plain(w, key), "：")
			}
			if strings.HasPrefix(key, "refusals.") && colon(own) != colon(english) {
				t.Errorf("%s: %s is %q; a colon says that the server's sentence follows, as in English", tag, key, plain(own, key))
			}
		}
	}
}

// TestPartsHaveWords: the page has a name for each part of the appliance that the doctor
// and the home view name, or it is the proper name of a program.
func TestPartsHaveWords(t *testing.T) {
	named := map[string]string{}
	for _, dir := range []string{"cmd/perch/doctor", "cmd/perch/appliance", "cmd/perch/config"} {
		maps.Copy(named, partsOf(t, dir))
	}
	if len(named) < 30 {
		t.Fatalf("only %d parts were found: %v", len(named), slices.Sorted(maps.Keys(named)))
	}
	holds(t, "parts", named, map[string]string{"avahi": "a program", "home": "Home Assistant", "openclaw": "a program", "wyoming": "a protocol"})
}

// holds fails the test for a name without a sentence in a view of the page, and for one
// that nobody sends.
func holds(t *testing.T, view string, sent, others map[string]string) {
	t.Helper()
	words := pageWords(t, English)
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		has, why := words.Has(view+"."+name), others[name]
		switch {
		case !has && why == "":
			t.Errorf("%s sends %s, for which the page has no words in %q, and which is not listed as what the page does not meet", sent[name], name, view)
		case has && why != "":
			t.Errorf("%s has words in %q, and is listed as what the page does not meet: %s", name, view, why)
		}
	}
	for _, key := range words.keys() {
		if of, name, _ := strings.Cut(key, "."); of == view && sent[name] == "" {
			t.Errorf("no program sends %s", key)
		}
	}
	for name := range others {
		if sent[name] == "" {
			t.Errorf("no program sends %s, which is listed as what the page does not meet", name)
		}
	}
}

func pageWords(t *testing.T, tag Tag) *Words {
	t.Helper()
	w := &Words{Tag: tag, messages: map[string]message{}}
	if err := w.add(os.DirFS("."), string(tag)+"/page.json"); err != nil {
		t.Fatal(err)
	}
	return w
}

// plain is a message without its values.
func plain(w *Words, key string) string {
	return w.messages[key].fill(w.Tag, func(string) (string, bool) { return "", true })
}

// each calls see with every node of the programs in a folder, or of one file.
func each(t *testing.T, dir string, see func(file string, n ast.Node)) {
	t.Helper()
	pattern := "../" + dir
	if filepath.Ext(dir) != ".go" {
		pattern += "/*.go"
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no programs in %s (%v)", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			see(strings.TrimPrefix(name, "../"), n)
			return true
		})
	}
}

// literal is a text of a program.
func literal(n ast.Node) string {
	if sum, is := n.(*ast.BinaryExpr); is { // "port " + address
		n = sum.X
	}
	if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
		if text, err := strconv.Unquote(l.Value); err == nil {
			return text
		}
	}
	return ""
}

// nameOfType is "Fault" for Fault{} and door.Fault{}.
func nameOfType(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return n.Sel.Name
	}
	return ""
}

// refusalsOf are the words of refusals of a package, with the file that has them.
func refusalsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	isWord := regexp.MustCompile(`^[a-z][a-z0-9_]+$`)
	found := map[string]string{}
	note := func(file string, n ast.Node) {
		if word := literal(n); isWord.MatchString(word) {
			found[word] = file
		}
	}
	each(t, dir, func(file string, n ast.Node) {
		switch n := n.(type) {
		case *ast.CompositeLit:
			kind := nameOfType(n.Type)
			coded := slices.Contains([]string{"Fault", "fault", "Shown"}, kind) || kind == "shown" && dir == "gateway/door"
			for i, e := range n.Elts {
				field, keyed := e.(*ast.KeyValueExpr)
				switch {
				// of a door.Known in a list, too, whose type is not written
				case keyed && (nameOfType(field.Key) == "Word" || coded && nameOfType(field.Key) == "Code"):
					note(file, field.Value)
				case !keyed && coded && i == 0:
					note(file, e)
				}
			}
		case *ast.CallExpr:
			if called := nameOfType(n.Fun); (called == "NewShown" || called == "refuse") && len(n.Args) > 0 {
				note(file, n.Args[0])
			}
		case *ast.FuncDecl:
			if n.Name.Name == "Code" && n.Recv != nil && n.Body != nil {
				ast.Inspect(n.Body, func(n ast.Node) bool {
					note(file, n)
					return true
				})
			}
		case *ast.GenDecl:
			if dir == "ota/espimage" && n.Tok == token.CONST && strings.HasPrefix(n.Doc.Text(), "Words of refusals") {
				for _, spec := range n.Specs {
					for _, v := range spec.(*ast.ValueSpec).Values {
						note(file, v)
					}
				}
			}
		}
	})
	return found
}

// partsOf are the names of parts that a package examines or is made of, without what
// follows a space.
func partsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	note := func(file string, n ast.Node) {
		if name, _, _ := strings.Cut(literal(n), " "); name != "" {
			found[name] = file
		}
	}
	each(t, dir, func(file string, n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called := nameOfType(n.Fun); dir == "cmd/perch/doctor" && (called == "add" || called == "addRead") && len(n.Args) > 0 {
				note(file, n.Args[0])
			}
		case *ast.CompositeLit:
			kind := nameOfType(n.Type)
			for i, e := range n.Elts {
				field, keyed := e.(*ast.KeyValueExpr)
				switch {
				case keyed && kind == "Part" && nameOfType(field.Key) == "Name", keyed && kind == "finding" && nameOfType(field.Key) == "Part",
					keyed && kind == "Engine" && nameOfType(field.Key) == "List":
					note(file, field.Value)
				case !keyed && i == 0 && kind == "Warning":
					note(file, e)
				}
			}
			if list, is := n.Type.(*ast.ArrayType); is && nameOfType(list.Elt) == "Warning" {
				for _, e := range n.Elts {
					if w, is := e.(*ast.CompositeLit); is && len(w.Elts) > 0 {
						note(file, w.Elts[0])
					}
				}
			}
		case *ast.ValueSpec:
			if len(n.Names) == 1 && n.Names[0].Name == "engineLists" {
				for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
					note(file, e)
				}
			}
		}
	})
	return found
}
