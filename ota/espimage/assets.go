package espimage

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Assets is the container of fonts, wake words and faces that a robot keeps in
// its partition of that name: a header of 12 bytes (number of files, checksum,
// length of the rest), a table of 44 bytes for each file, and the files, each
// behind the two bytes ZZ. The layout is that of main/assets.cc in
// 78/xiaozhi-esp32.
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
	mostIndex    = 256 << 10 // bytes of index.json
	indexName    = "index.json"
)

// ReadAssets reads a container as a robot would. The error is a *Refusal if a robot
// would show nothing of it or miss a file, and else the reader's.
func ReadAssets(r io.ReaderAt, size int64) (Assets, error) {
	a := Assets{Size: max(size, 0)}
	start, err := begin(r, a.Size)
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
	return a, a.read(io.NewSectionReader(r, 0, assetsHeader+length), int(count), sum)
}

func field(b []byte, at int) int64 { return int64(binary.LittleEndian.Uint32(b[at:])) }

// read reads the table, the files' beginnings and the index of a container.
func (a *Assets) read(r *io.SectionReader, count int, sum int64) error {
	if err := sumUp(io.NewSectionReader(r, assetsHeader, r.Size()-assetsHeader), sum); err != nil {
		return err
	}
	table := make([]byte, count*assetsEntry)
	if _, err := r.ReadAt(table, assetsHeader); err != nil {
		return fmt.Errorf("read the assets: %w", err)
	}
	data := io.NewSectionReader(r, assetsHeader+int64(len(table)), r.Size()-assetsHeader-int64(len(table)))
	var index *io.SectionReader
	for entry := range slices.Chunk(table, assetsEntry) {
		f, at, err := readAsset(entry, data)
		if err != nil {
			return err
		}
		if a.has(f.Name) {
			return refuse(BadTable, "two files of it have the name %s, and a robot sees the last one only", f.Name)
		}
		a.Files = append(a.Files, f)
		if f.Name == indexName {
			index = io.NewSectionReader(data, at, f.Size)
		}
	}
	if index == nil {
		return refuse(BadIndex, "it holds no %s, without which a robot shows nothing of it", indexName)
	}
	return a.checkIndex(index)
}

func sumUp(r io.Reader, want int64) error {
	var sum byteSum
	if _, err := io.Copy(&sum, r); err != nil {
		return fmt.Errorf("read the assets: %w", err)
	}
	if int64(sum&0xFFFF) != want {
		return refuse(BadChecksum, "the checksum is wrong: the file was damaged")
	}
	return nil
}

type byteSum uint32

func (s *byteSum) Write(piece []byte) (int, error) {
	for _, b := range piece {
		*s += byteSum(b)
	}
	return len(piece), nil
}

// readAsset reads an entry of the table, and where in the data its file is.
func readAsset(entry []byte, data *io.SectionReader) (f Asset, at int64, err error) {
	name, _, ended := bytes.Cut(entry[:assetsName], []byte{0})
	plain := !bytes.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' })
	if !ended || len(name) == 0 || !plain {
		return f, 0, refuse(BadTable, "the name of a file in it is not one of 1 to 31 plain characters")
	}
	f = Asset{Name: string(name), Size: field(entry, 32)}
	at = field(entry, 36)
	if at+2+f.Size > data.Size() {
		return f, 0, refuse(BadTable, "the file %s in it lies beyond its end", f.Name)
	}
	var mark [2]byte
	if _, err := data.ReadAt(mark[:], at); err != nil && err != io.EOF {
		return f, 0, fmt.Errorf("read the assets: %w", err)
	}
	if mark != [2]byte{'Z', 'Z'} {
		return f, 0, refuse(BadTable, "the file %s in it does not begin with ZZ", f.Name)
	}
	return f, at + 2, nil
}

func (a *Assets) has(name string) bool {
	return slices.ContainsFunc(a.Files, func(f Asset) bool { return f.Name == name })
}

// checkIndex reads index.json, and looks for the files that it names.
func (a *Assets) checkIndex(r *io.SectionReader) error {
	if r.Size() > mostIndex {
		return refuse(BadIndex, "its %s has %d bytes; a robot has no memory for that", indexName, r.Size())
	}
	text := make([]byte, r.Size())
	if _, err := r.ReadAt(text, 0); err != nil && err != io.EOF {
		return fmt.Errorf("read the assets: %w", err)
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
			return refuse(MissingFile, "its %s names %s, which is not in it", indexName, clean(name))
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
	faces, _ := index["emoji_collection"].([]any) // what is of another type names none
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

// clean returns a foreign name for an error message.
func clean(name string) string {
	plain := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, name)
	return plain[:min(len(plain), assetsName)]
}
