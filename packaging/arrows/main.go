// Command arrows counts the references between files of a Go package that run against the order
// of its files:
//
//	go run ./packaging/arrows [-v] [-most 15] ./gateway/robot ...
//
// An arrow is a pair of files: the first uses a function, method, field, type, constant or
// variable that the second declares. The files are ordered so that as few arrows as possible
// run up; the rest are cycles between files. For each package it prints the arrows, how many
// run up, the packages of this module that it imports, and the type with the most methods.
// With -v it prints each arrow that runs up, with the names used. It exits with 1 if more than
// -most percent run up.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// arrow is a pair of files by their base names: from uses what to declares.
type arrow struct{ from, to string }

// figures are the counts of one package.
type figures struct {
	files   []string                  // the lowest first
	arrows  map[arrow]map[string]bool // the names used
	up      []arrow                   // from a lower file to a higher one
	imports map[string]bool           // packages of this module
	methods map[string]int            // by type
}

func main() {
	verbose := flag.Bool("v", false, "print each arrow that runs up")
	most := flag.Int("most", 100, "the `percentage` of arrows that may run up")
	flag.Parse()
	failed := false
	for _, dir := range flag.Args() {
		f, err := count(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "arrows:", err)
			os.Exit(2)
		}
		share := 100 * len(f.up) / max(1, len(f.arrows))
		largest := slices.MaxFunc(append(slices.Sorted(maps.Keys(f.methods)), ""), func(a, b string) int { return cmp.Compare(f.methods[a], f.methods[b]) })
		fmt.Printf("%-32s %3d files  %3d of %3d arrows up (%d %%)  imports %d  %s has %d methods\n",
			dir, len(f.files), len(f.up), len(f.arrows), share, len(f.imports), largest, f.methods[largest])
		if *verbose {
			for _, a := range f.up {
				fmt.Printf("\t%s -> %s  %s\n", a.from, a.to, strings.Join(slices.Sorted(maps.Keys(f.arrows[a])), " "))
			}
		}
		failed = failed || share > *most
	}
	if failed {
		os.Exit(1)
	}
}

// count parses and resolves the files of a package. Imported packages are not read: their names
// stay unresolved, which does not affect the package's own.
func count(dir string) (figures, error) {
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		return figures{}, err
	}
	set := token.NewFileSet()
	f := figures{arrows: map[arrow]map[string]bool{}, imports: map[string]bool{}, methods: map[string]int{}}
	var files []*ast.File
	for _, name := range slices.Concat(pkg.GoFiles, pkg.CgoFiles) {
		file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return figures{}, err
		}
		files, f.files = append(files, file), append(f.files, name)
		for _, spec := range file.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); strings.HasPrefix(path, "perch/") {
				f.imports[path] = true
			}
		}
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}, Importer: emptyImporter{}, FakeImportC: true}
	own, _ := config.Check(dir, set, files, &info)
	for ident, object := range info.Uses {
		if object.Pkg() != own || !object.Pos().IsValid() {
			continue
		}
		a := arrow{base(set, ident.Pos()), base(set, object.Pos())}
		if local := own.Scope().Lookup(object.Name()) != object && !member(object); local || a.from == a.to {
			continue
		}
		if f.arrows[a] == nil {
			f.arrows[a] = map[string]bool{}
		}
		f.arrows[a][object.Name()] = true
	}
	for _, name := range own.Scope().Names() {
		if named, ok := own.Scope().Lookup(name).Type().(*types.Named); ok && own.Scope().Lookup(name) == named.Obj() {
			if n := named.NumMethods(); n > 0 {
				f.methods[name] = n
			}
		}
	}
	f.order()
	return f, nil
}

// member reports whether an object is a field of a struct, or a method.
func member(object types.Object) bool {
	switch o := object.(type) {
	case *types.Var:
		return o.IsField()
	case *types.Func:
		return o.Signature().Recv() != nil
	}
	return false
}

func base(set *token.FileSet, at token.Pos) string { return filepath.Base(set.Position(at).Filename) }

// order sorts the files so that few arrows run up: it moves one file at a time to the best place,
// until no move helps, starting with the files that use the fewest others.
func (f *figures) order() {
	uses := func(name string) (n int) {
		for a := range f.arrows {
			if a.from == name {
				n++
			}
			if a.to == name {
				n--
			}
		}
		return n
	}
	slices.SortStableFunc(f.files, func(a, b string) int { return cmp.Compare(uses(a), uses(b)) })
	for better := true; better; {
		better = false
		for i := range f.files {
			least, best := len(f.upward(f.files)), -1
			rest := slices.Delete(slices.Clone(f.files), i, i+1)
			for at := range len(rest) + 1 {
				if n := len(f.upward(slices.Insert(slices.Clone(rest), at, f.files[i]))); n < least {
					least, best = n, at
				}
			}
			if best >= 0 {
				f.files, better = slices.Insert(rest, best, f.files[i]), true
			}
		}
	}
	f.up = f.upward(f.files)
}

// upward returns the arrows from a file to a later one in an order.
func (f *figures) upward(order []string) (up []arrow) {
	place := map[string]int{}
	for i, name := range order {
		place[name] = i
	}
	for a := range f.arrows {
		if place[a.from] < place[a.to] {
			up = append(up, a)
		}
	}
	slices.SortFunc(up, func(a, b arrow) int { return cmp.Or(strings.Compare(a.from, b.from), strings.Compare(a.to, b.to)) })
	return up
}

// emptyImporter imports every package as an empty one.
type emptyImporter struct{}

func (emptyImporter) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}
