package nvs

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Type is the type of a value, as the format numbers it. The firmware does not
// find a value whose type is not the one it asks for.
type Type byte

// The types. A blob has two more numbers, for its chunks and its index.
const (
	U8      Type = 0x01
	U16     Type = 0x02
	U32     Type = 0x04
	U64     Type = 0x08
	I8      Type = 0x11
	I16     Type = 0x12
	I32     Type = 0x14
	I64     Type = 0x18
	String  Type = 0x21
	OldBlob Type = 0x41 // of format version 1, on one page
	Blob    Type = 0x48

	blobData  Type = 0x42
	blobIndex Type = Blob
)

// types are the names of the types.
func types() map[Type]string {
	return map[Type]string{
		U8: "u8", U16: "u16", U32: "u32", U64: "u64", I8: "i8", I16: "i16", I32: "i32", I64: "i64",
		String: "string", OldBlob: "blob1", Blob: "blob",
	}
}

// ParseType returns the type of a name: u8 to u64, i8 to i64, string, blob.
func ParseType(name string) (Type, bool) {
	for t, n := range types() {
		if n == name {
			return t, true
		}
	}
	return 0, false
}

func (t Type) String() string {
	if name, known := types()[t]; known {
		return name
	}
	return fmt.Sprintf("type %#02x", byte(t))
}

// isNumber reports whether the type is one of the numbers; its lower half is
// then its size in bytes, and its upper half whether it has a sign.
func (t Type) isNumber() bool {
	_, known := types()[t]
	return known && t < String
}

func (t Type) size() int    { return int(t & 0x0F) }
func (t Type) signed() bool { return t&0x10 != 0 }

// Value is a value as it is stored: numbers little-endian in the bytes of
// their type, strings without the closing zero.
type Value struct {
	Type Type
	Data []byte
}

// Text returns a string's value.
func Text(s string) Value { return Value{String, []byte(s)} }

// ParseValue reads a value as people type it: a number in decimal, or in hex after
// 0x; a string as it is; a blob in hex.
func ParseValue(t Type, text string) (Value, error) {
	switch {
	case t == String:
		return Text(text), nil
	case t == Blob, t == OldBlob:
		data, err := hex.DecodeString(text)
		if err != nil {
			return Value{}, fmt.Errorf("%q is not hex: %w", text, err)
		}
		return Value{t, data}, nil
	case !t.isNumber():
		return Value{}, fmt.Errorf("there is no %v", t)
	}
	var n uint64
	var err error
	if t.signed() {
		var i int64
		i, err = strconv.ParseInt(text, 0, 8*t.size())
		n = uint64(i)
	} else {
		n, err = strconv.ParseUint(text, 0, 8*t.size())
	}
	if err != nil {
		return Value{}, fmt.Errorf("%q is not a valid %v", text, t)
	}
	return Value{t, binary.LittleEndian.AppendUint64(nil, n)[:t.size()]}, nil
}

// String returns the form that ParseValue reads.
func (v Value) String() string {
	switch {
	case v.Type == String:
		return string(v.Data)
	case !v.Type.isNumber() || len(v.Data) != v.Type.size():
		return hex.EncodeToString(v.Data)
	}
	n := binary.LittleEndian.Uint64(append(bytes.Clone(v.Data), make([]byte, 8)...))
	if v.Type.signed() {
		unused := 64 - 8*v.Type.size()
		return strconv.FormatInt(int64(n<<unused)>>unused, 10)
	}
	return strconv.FormatUint(n, 10)
}

func (v Value) clone() Value { return Value{v.Type, bytes.Clone(v.Data)} }

func (v Value) check() error {
	switch {
	case v.Type == String && (len(v.Data) > MaxString || bytes.IndexByte(v.Data, 0) >= 0):
		return fmt.Errorf("a string has at most %d bytes, and no zero within", MaxString)
	case v.Type == OldBlob && len(v.Data) > mostOldBlob, v.Type == Blob && len(v.Data) > MaxBlob:
		return fmt.Errorf("a %v of %d bytes is too long", v.Type, len(v.Data))
	case v.Type.isNumber() && len(v.Data) != v.Type.size():
		return fmt.Errorf("a %v has %d bytes, not %d", v.Type, v.Type.size(), len(v.Data))
	}
	if _, known := types()[v.Type]; !known {
		return fmt.Errorf("there is no %v", v.Type)
	}
	return nil
}

// mostOldBlob is the limit of the format's first version, in bytes.
const mostOldBlob = 1984
