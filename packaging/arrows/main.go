// Command arrows measures the cycles between the files of Go packages:
//
//	go run ./packaging/arrows [-v] [-most 15] ./gateway/robot ...
//
// An arrow is a pair of files: the first file uses a function, method, field, type, constant
// or variable that the second declares. The command sorts the files so that few arrows point
// from an earlier file to a later one. These upward arrows belong to cycles.
//
// For each package the command prints the number of arrows, the number of upward arrows, the
// number of imported packages of this module, and the type with the most methods. With -v it
// also prints each upward arrow with the used names. It exits with 1 if more than -most percent
// of the arrows of a package point upward, and with 2 after an error.
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

// arrow is a pair of files, by their base names. The file from uses a declaration in the file to.
type arrow struct{ from, to string }

// figures are the counts of one package.
type figures struct {
	files   []string                  // names of the files, in the order that the method order has found
	arrows  map[arrow]map[string]bool // all arrows, with the used names
	up      []arrow                   // arrows from a file to a later one
	imports map[string]bool           // imported packages of this module
	methods map[string]int            // number of methods of each type
}

func main() {
	verbose := flag.Bool("v", false, "print each upward arrow")
	maxShare := flag.Int("most", 100, "maximum `percentage` of upward arrows")
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
		failed = failed || share > *maxShare
	}
	if failed {
		os.Exit(1)
	}
}

// count counts the arrows of the package in a folder. It does not read imported packages. Names
// from imported packages stay unresolved, which does not affect the names of the package itself.
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
	typesPkg, _ := config.Check(dir, set, files, &info)
	for ident, object := range info.Uses {
		if object.Pkg() != typesPkg || !object.Pos().IsValid() {
			continue
		}
		a := arrow{base(set, ident.Pos()), base(set, object.Pos())}
		isLocal := typesPkg.Scope().Lookup(object.Name()) != object && !isMember(object)
		if isLocal || a.from == a.to {
			continue
		}
		if f.arrows[a] == nil {
			f.arrows[a] = map[string]bool{}
		}
		f.arrows[a][object.Name()] = true
	}
	for _, name := range typesPkg.Scope().Names() {
		if named, ok := typesPkg.Scope().Lookup(name).Type().(*types.Named); ok && typesPkg.Scope().Lookup(name) == named.Obj() {
			if n := named.NumMethods(); n > 0 {
				f.methods[name] = n
			}
		}
	}
	f.order()
	return f, nil
}

// isMember reports whether an object is a field of a struct, or a method.
func isMember(object types.Object) bool {
	switch o := object.(type) {
	case *types.Var:
		return o.IsField()
	case *types.Func:
		return o.Signature().Recv() != nil
	}
	return false
}

// base returns the base name of the file that contains a position.
func base(set *token.FileSet, pos token.Pos) string { return filepath.Base(set.Position(pos).Filename) }

// order sorts the files so that few arrows point upward, and sets f.up. It first sorts the files by
// the number of arrows from a file less the number of arrows to the file. It then moves one file at a
// time to a better place, until no move helps.
func (f *figures) order() {
	balance := func(name string) (n int) {
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
	slices.SortStableFunc(f.files, func(a, b string) int { return cmp.Compare(balance(a), balance(b)) })
	for better := true; better; {
		better = false
		for i := range f.files {
			fewest, best := len(f.upward(f.files)), -1
			rest := slices.Delete(slices.Clone(f.files), i, i+1)
			for place := range len(rest) + 1 {
				if n := len(f.upward(slices.Insert(slices.Clone(rest), place, f.files[i]))); n < fewest {
					fewest, best = n, place
				}
			}
			if best >= 0 {
				f.files, better = slices.Insert(rest, best, f.files[i]), true
			}
		}
	}
	f.up = f.upward(f.files)
}

// upward returns the arrows from a file to a later one, if the files are in the given order.
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

// emptyImporter is a types.Importer that returns an empty package for every path.
type emptyImporter struct{}

// Import implements types.Importer.
func (emptyImporter) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}
