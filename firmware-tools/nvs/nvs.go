// Package nvs reads and writes the NVS partition (non-volatile storage), which contains the
// settings of a robot with an Espressif chip. The format is version 2 of ESP-IDF, without
// encryption. The package writes the same bytes as Espressif's generator. It also reads partitions
// after a robot has erased and moved entries. The command perch-tools robot nvs uses the package.
//
// A partition consists of pages of 4096 bytes. A page consists of a header of 32 bytes, a
// bitmap that says which entries are written or erased, and 126 entries of 32 bytes. A number
// takes one entry. A string takes one entry, followed on the same page by entries that hold its
// bytes. A blob consists of chunks, which are stored like strings on as many pages as needed,
// and an index entry with the number of chunks.
package nvs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sizes and bounds of the format.
const (
	PageSize  = 4096         // bytes in a page
	MinSize   = 3 * PageSize // bytes; ESP-IDF opens a smaller partition for reading only
	MaxSize   = 1 << 20      // bytes; this package supports no larger partition
	MaxKey    = 15           // bytes in a key or in the name of a namespace
	MaxString = 3999         // bytes in a string, without the final zero
	MaxBlob   = 508000       // bytes in a blob

	pageEntries   = 126 // entries on a page
	entrySize     = 32  // bytes in an entry
	firstEntry    = 64  // offset of the first entry on a page
	maxNamespaces = 254
)

// Errors.
var (
	// ErrFormat is wrapped by the errors of Decode for bytes that are not an NVS partition or are
	// not supported, and by the errors of Encode for an invalid size.
	ErrFormat = errors.New("not an NVS partition")
	// ErrFull is wrapped by the error of Encode if the items do not fit.
	ErrFull = errors.New("the NVS partition is full")
	// ErrItem is wrapped by the error of Set for names and values that the format cannot hold.
	ErrItem = errors.New("not an NVS item")
)

// Item is a value with its namespace and its key.
type Item struct {
	Namespace string // empty if the partition lacks the namespace's name; the firmware then does not find the item
	Key       string
	Value     Value
}

// Partition is the content of an NVS partition, in the order of writing. The zero
// value is an empty partition.
type Partition struct {
	records []record
	damaged []string // descriptions of damaged entries
}

// record is an item as it is stored, with the number of its namespace. A record in
// namespaceTable defines a namespace: its key is the name, and its value the number.
type record struct {
	namespace byte
	key       string
	value     Value
	raw       []byte // encoded entries of an item that Value cannot represent; nil for other items
}

// namespaceTable is the number of the namespace whose records define the other namespaces.
const namespaceTable = 0

// Items returns all items in the order of writing.
func (p *Partition) Items() []Item {
	names := map[byte]string{}
	for _, r := range p.records {
		if r.namespace == namespaceTable && r.value.Type == U8 {
			names[r.value.Data[0]] = r.key
		}
	}
	var items []Item
	for _, r := range p.records {
		if r.namespace != namespaceTable {
			items = append(items, Item{names[r.namespace], r.key, r.value.clone()})
		}
	}
	return items
}

// Damaged describes the pages and entries that Decode dropped because they are invalid or incomplete.
// A robot would drop them at its next start.
func (p *Partition) Damaged() []string { return slices.Clone(p.damaged) }

// Get returns the value of a key, or false if the key does not exist.
func (p *Partition) Get(namespace, key string) (Value, bool) {
	number, ok := p.namespaceNumber(namespace)
	i := p.indexOf(number, key)
	if !ok || i < 0 {
		return Value{}, false
	}
	return p.records[i].value.clone(), true
}

// Set stores a value. It replaces an existing value of any type, or appends a new one. Errors
// wrap ErrItem.
func (p *Partition) Set(namespace, key string, v Value) error {
	if err := errors.Join(checkName("namespace", namespace), checkName("key", key), v.check()); err != nil {
		return fmt.Errorf("%s/%s: %w: %w", namespace, key, ErrItem, err)
	}
	number, ok := p.namespaceNumber(namespace)
	if !ok {
		if number = p.freeNamespaceNumber(); number == namespaceTable {
			return fmt.Errorf("%s/%s: %w: there are already %d namespaces, the maximum", namespace, key, ErrItem, maxNamespaces)
		}
		p.records = append(p.records, record{namespace: namespaceTable, key: namespace, value: Value{U8, []byte{number}}})
	}
	r := record{namespace: number, key: key, value: v.clone()}
	i := p.indexOf(number, key)
	if i < 0 {
		p.records = append(p.records, r)
		return nil
	}
	p.records[i] = r
	// Older versions of ESP-IDF allowed a key to have one value of each type. Remove the values of
	// other types.
	others := slices.DeleteFunc(p.records[i+1:], func(o record) bool { return o.namespace == number && o.key == key })
	p.records = append(p.records[:i+1], others...)
	return nil
}

// Delete removes a value and reports whether it existed. Like the firmware it does not remove
// an empty namespace.
func (p *Partition) Delete(namespace, key string) bool {
	number, ok := p.namespaceNumber(namespace)
	oldLen := len(p.records)
	if ok {
		p.records = slices.DeleteFunc(p.records, func(r record) bool { return r.namespace == number && r.key == key })
	}
	return len(p.records) < oldLen
}

// indexOf returns the index of the first record with a key in a namespace, or -1.
func (p *Partition) indexOf(namespace byte, key string) int {
	return slices.IndexFunc(p.records, func(r record) bool { return r.namespace == namespace && r.key == key })
}

// namespaceNumber returns the number of a namespace, or false if the namespace does not exist.
func (p *Partition) namespaceNumber(name string) (byte, bool) {
	i := p.indexOf(namespaceTable, name)
	if i < 0 || p.records[i].value.Type != U8 {
		return namespaceTable, false
	}
	return p.records[i].value.Data[0], true
}

// freeNamespaceNumber returns the lowest number that no namespace and no item uses, or
// namespaceTable if all numbers are used.
func (p *Partition) freeNamespaceNumber() byte {
	var used [256]bool
	for _, r := range p.records {
		if r.namespace == namespaceTable && r.value.Type == U8 {
			used[r.value.Data[0]] = true
		}
		used[r.namespace] = true
	}
	for n := 1; n <= maxNamespaces; n++ {
		if !used[n] {
			return byte(n)
		}
	}
	return namespaceTable
}

// checkName returns an error if name is not valid as a key or as a namespace. kind, which is "key" or
// "namespace", is used in the error.
func checkName(kind, name string) error {
	if name == "" || len(name) > MaxKey || strings.Contains(name, "\x00") {
		return fmt.Errorf("a %s has 1 to %d bytes", kind, MaxKey)
	}
	return nil
}
