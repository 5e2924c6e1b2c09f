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

// Assets is the container of fonts, wake words and faces in a robot's assets partition: a
// header of 12 bytes (number of files, checksum, length of the rest), a table of 44 bytes
// per file, and the files, each preceded by the two bytes ZZ. The layout is defined by
// main/assets.cc in 78/xiaozhi-esp32.
type Assets struct {
	Size  int64 // of the file, in bytes
	Files []Asset
}

// Asset is one file of a container.
type Asset struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // in bytes
}

// Words of refusals of containers.
const (
	NotAssets   = "not_assets"
	BadTable    = "bad_table"
	BadIndex    = "bad_index"
	MissingFile = "missing_file"
)

const (
	assetsHeader = 12
	assetsEntry  = 44
	assetsName   = 32
	mostAssets   = 4096
	indexName    = "index.json"
)

// ReadAssets reads a container as a robot would. The error is a *Refusal if a robot would
// ignore it or miss a file, and otherwise the reader's.
func ReadAssets(r io.ReaderAt, size int64) (Assets, error) {
	a := Assets{Size: max(size, 0)}
	start, err := readStart(r, a.Size)
	if err != nil {
		return a, fmt.Errorf("read the assets: %w", err)
	}
	if len(start) < assetsHeader+assetsEntry {
		return a, refuse(NotAssets, "this is no asset file: it is shorter than the table of one")
	}
	if a.Size > MaxSize {
		return a, refuse(TooLarge, "the file has %d bytes; no robot has a partition of more than 16 MB", a.Size)
	}
	count, sum, length := field(start, 0), field(start, 4), field(start, 8)
	if !isAssets(start, assetsHeader+length) || count > mostAssets {
		kind, err := kindOf(r, a.Size, start)
		if err != nil {
			return a, fmt.Errorf("read the assets: %w", err)
		}
		return a, refuse(NotAssets, "this is no asset file, as the firmware's asset generator makes them (it is of the kind: %s)", kind)
	}
	if assetsHeader+length > a.Size {
		return a, refuse(Truncated, "the file has %d bytes, and tells of %d: it was cut short", a.Size, assetsHeader+length)
	}
	file := make([]byte, assetsHeader+length)
	if n, err := r.ReadAt(file, 0); n < len(file) {
		return a, fmt.Errorf("read the assets: %w", err)
	}
	return a, a.read(file[assetsHeader:], int(count), sum)
}

func field(b []byte, at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }

// read reads the table, the files' beginnings and the index of a container without its
// header.
func (a *Assets) read(b []byte, count int, want int64) error {
	sum := uint32(0)
	for _, c := range b {
		sum += uint32(c)
	}
	if int64(sum&0xFFFF) != want {
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
			return refuse(BadTable, "two files of it have the name %s, and a robot sees the last one only", f.Name)
		}
		a.Files = append(a.Files, f)
		if f.Name == indexName {
			index = content
		}
	}
	if index == nil {
		return refuse(BadIndex, "it holds no %s, without which a robot shows nothing of it", indexName)
	}
	return a.checkIndex(index)
}

// readAsset reads an entry of the table, and returns its file's content.
func readAsset(entry, data []byte) (f Asset, content []byte, err error) {
	name, _, ended := bytes.Cut(entry[:assetsName], []byte{0})
	plain := !bytes.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' })
	if !ended || len(name) == 0 || !plain {
		return f, nil, refuse(BadTable, "the name of a file in it is not one of 1 to 31 plain characters")
	}
	f = Asset{Name: string(name), Size: field(entry, 32)}
	at := field(entry, 36)
	if at+2+f.Size > int64(len(data)) {
		return f, nil, refuse(BadTable, "the file %s in it lies beyond its end", f.Name)
	}
	content, marked := bytes.CutPrefix(data[at:at+2+f.Size], []byte("ZZ"))
	if !marked {
		return f, nil, refuse(BadTable, "the file %s in it does not begin with ZZ", f.Name)
	}
	return f, content, nil
}

func (a *Assets) has(name string) bool {
	return slices.ContainsFunc(a.Files, func(f Asset) bool { return f.Name == name })
}

// checkIndex reads index.json, and checks that the files it names exist.
func (a *Assets) checkIndex(text []byte) error {
	if len(text) > limit.List {
		return refuse(BadIndex, "its %s has %d bytes; a robot has no memory for that", indexName, len(text))
	}
	var index map[string]any
	if json.Unmarshal(bytes.TrimRight(text, "\x00"), &index) != nil || index == nil {
		return refuse(BadIndex, "its %s is no JSON object", indexName)
	}
	if version, isNumber := index["version"].(float64); isNumber && version > 1 {
		return refuse(BadIndex, "its %s has version %v; the firmware knows version 1", indexName, version)
	}
	for _, name := range filesOf(index) {
		if !a.has(name) {
			return refuse(MissingFile, "its %s names %s, which is not in it", indexName, plain.Clip(plain.Text(name), assetsName))
		}
	}
	return nil
}

func filesOf(index map[string]any) (names []string) {
	add := func(v any) {
		if name, isText := v.(string); isText {
			names = append(names, name)
		}
	}
	add(index["srmodels"])
	add(index["text_font"])
	faces, _ := index["emoji_collection"].([]any) // a value of another type names no files
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
