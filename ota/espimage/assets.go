package espimage

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"perch/limit"
	"perch/plain"
)

// Assets is the list of files in an asset file, which contains fonts, wake words and faces for
// a robot's assets partition. An asset file consists of a header of 12 bytes (number of files,
// checksum, and number of bytes after the header), a table with 44 bytes per file, and the contents of the
// files, each preceded by the two bytes ZZ. The format is defined by main/assets.cc in
// 78/xiaozhi-esp32.
type Assets struct {
	Size  int64 // size of the asset file in bytes
	Files []Asset
}

// Asset is one file within an asset file.
type Asset struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // in bytes
}

// Values of Refusal.Word for asset files.
const (
	NotAssets   = "not_assets"
	BadTable    = "bad_table"
	BadIndex    = "bad_index"
	MissingFile = "missing_file"
)

const (
	assetsHeader = 12   // bytes
	assetsEntry  = 44   // bytes of a table entry
	assetsName   = 32   // bytes of the name in a table entry
	maxAssets    = 4096 // files in an asset file
	indexName    = "index.json"
)

// ReadAssets reads an asset file of size bytes as a robot would. The error is a *Refusal if a robot
// would ignore the asset file or not find one of its files; other errors wrap the error of r.
func ReadAssets(r io.ReaderAt, size int64) (Assets, error) {
	a := Assets{Size: max(size, 0)}
	start, err := readStart(r, a.Size)
	if err != nil {
		return a, fmt.Errorf("read the assets: %w", err)
	}
	if len(start) < assetsHeader+assetsEntry {
		return a, refuse(NotAssets, "this is not an asset file: it is shorter than the smallest asset file")
	}
	if a.Size > MaxSize {
		return a, refuse(TooLarge, "the file has %d bytes; no robot has a partition of more than 16 MB", a.Size)
	}
	count, sum, length := uint32At(start, 0), uint32At(start, 4), uint32At(start, 8)
	if !isAssets(start, assetsHeader+length) || count > maxAssets {
		kind, err := detectKind(r, a.Size, start)
		if err != nil {
			return a, fmt.Errorf("read the assets: %w", err)
		}
		return a, refuse(NotAssets, "this is not an asset file of the firmware's asset generator (its kind: %s)", kind)
	}
	if assetsHeader+length > a.Size {
		return a, refuse(Truncated, "the file has %d bytes, and its header announces %d: it was cut short", a.Size, assetsHeader+length)
	}
	file := make([]byte, assetsHeader+length)
	if n, err := r.ReadAt(file, 0); n < len(file) {
		return a, fmt.Errorf("read the assets: %w", err)
	}
	return a, a.read(file[assetsHeader:], int(count), sum)
}

// uint32At returns the little-endian number at an offset of b.
func uint32At(b []byte, offset int) int64 { return int64(binary.LittleEndian.Uint32(b[offset:])) }

// read reads the bytes b after the header of an asset file: it verifies the checksum, reads the table
// with count entries, and checks the file index.json.
func (a *Assets) read(b []byte, count int, checksum int64) error {
	sum := uint32(0)
	for _, c := range b {
		sum += uint32(c)
	}
	if int64(sum&0xFFFF) != checksum {
		return refuse(BadChecksum, "the checksum is wrong: the file was damaged")
	}
	table, data := b[:count*assetsEntry], b[count*assetsEntry:]
	var index []byte
	for entry := range slices.Chunk(table, assetsEntry) {
		f, content, err := readAsset(entry, data)
		if err != nil {
			return err
		}
		if a.has(f.Name) {
			return refuse(BadTable, "two files in it have the name %s, and a robot finds only the last one", f.Name)
		}
		a.Files = append(a.Files, f)
		if f.Name == indexName {
			index = content
		}
	}
	if index == nil {
		return refuse(BadIndex, "it holds no %s, and without that a robot uses none of its files", indexName)
	}
	return a.checkIndex(index)
}

// readAsset parses an entry of the table and returns the file and its content. data contains
// the contents of all files.
func readAsset(entry, data []byte) (f Asset, content []byte, err error) {
	name, _, terminated := bytes.Cut(entry[:assetsName], []byte{0})
	printable := !bytes.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' })
	if !terminated || len(name) == 0 || !printable {
		return f, nil, refuse(BadTable, "the name of a file in it is not one of 1 to 31 plain characters")
	}
	f = Asset{Name: string(name), Size: uint32At(entry, 32)}
	offset := uint32At(entry, 36)
	if offset+2+f.Size > int64(len(data)) {
		return f, nil, refuse(BadTable, "the file %s in it lies beyond its end", f.Name)
	}
	content, hasMark := bytes.CutPrefix(data[offset:offset+2+f.Size], []byte("ZZ"))
	if !hasMark {
		return f, nil, refuse(BadTable, "the file %s in it does not begin with ZZ", f.Name)
	}
	return f, content, nil
}

// has reports whether there is a file with a name.
func (a *Assets) has(name string) bool {
	return slices.ContainsFunc(a.Files, func(f Asset) bool { return f.Name == name })
}

// checkIndex parses index.json and checks that the files that it names exist.
func (a *Assets) checkIndex(text []byte) error {
	if len(text) > limit.List {
		return refuse(BadIndex, "its %s has %d bytes; a robot has no memory for that", indexName, len(text))
	}
	var index map[string]any
	if json.Unmarshal(bytes.TrimRight(text, "\x00"), &index) != nil || index == nil {
		return refuse(BadIndex, "its %s is not a JSON object", indexName)
	}
	if version, isNumber := index["version"].(float64); isNumber && version > 1 {
		return refuse(BadIndex, "its %s has version %v; the firmware knows version 1", indexName, version)
	}
	for _, name := range filesIn(index) {
		if !a.has(name) {
			return refuse(MissingFile, "its %s names %s, which is not in it", indexName, plain.Clip(plain.Text(name), assetsName))
		}
	}
	return nil
}

// filesIn returns the names of the files that index.json names.
func filesIn(index map[string]any) (names []string) {
	add := func(v any) {
		if name, isText := v.(string); isText {
			names = append(names, name)
		}
	}
	add(index["srmodels"])
	add(index["text_font"])
	faces, _ := index["emoji_collection"].([]any) // values of other types are ignored
	for _, each := range faces {
		face, _ := each.(map[string]any)
		add(face["file"])
	}
	skin, _ := index["skin"].(map[string]any)
	for _, each := range skin {
		theme, _ := each.(map[string]any)
		add(theme["background_image"])
	}
	return names
}
