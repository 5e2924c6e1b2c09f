package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"perch/command"
	"perch/firmware-tools/nvs"
	"perch/plain"
)

// nvsFlags are the argument and the options of the command nvs. NVS, the non-volatile storage, is
// the partition of a robot's flash that holds the settings.
type nvsFlags struct {
	file    string   // file to read or, with create, to write
	out     string   // file to write; empty for the same file
	create  bool     // start with an empty partition
	size    int      // size of a new partition in bytes
	set     []string // each NAMESPACE/KEY=VALUE
	remove  []string // each NAMESPACE/KEY
	ota     string   // bootstrap URL to store; may be empty
	json    bool
	secrets bool // show passwords and tokens
	drop    bool // drop damaged entries
}

// nvsCommand returns the command perch-tools robot nvs.
func nvsCommand() *cobra.Command {
	f := &nvsFlags{}
	c := &cobra.Command{
		Use:   "nvs FILE",
		Short: "Show or change the settings in a robot's NVS partition",
		Long:  "Without --set, --ota or --delete nothing is changed.",
		Example: `perch-tools robot nvs nvs.bin
			perch-tools robot nvs nvs.bin --ota http://perch.local:8003/xiaozhi/ota/`,
		RunE: func(c *cobra.Command, args []string) error {
			f.file = args[0]
			return f.nvs(c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	s := c.Flags()
	s.StringArrayVar(&f.set, "set", nil, "`NAMESPACE/KEY=VALUE` to store, or NAMESPACE/KEY=TYPE:VALUE for a key unknown to the firmware; repeatable")
	s.StringArrayVar(&f.remove, "delete", nil, "`NAMESPACE/KEY` to remove; repeatable")
	s.StringVar(&f.ota, "ota", "", "bootstrap `URL` of the appliance to store, such as http://perch.local:8003/xiaozhi/ota/")
	s.StringVar(&f.out, "out", "", "`FILE` to write to, instead of the one that was read")
	s.BoolVar(&f.create, "new", false, "create the file, with an empty partition")
	s.IntVar(&f.size, "size", 0x4000, "size of a new partition, in `BYTES`")
	s.BoolVar(&f.json, "json", false, "print JSON")
	s.BoolVar(&f.secrets, "show-secrets", false, "show passwords and tokens")
	s.BoolVar(&f.drop, "drop-damaged", false, "write the partition without its damaged entries")
	return c
}

// nvs prints the NVS partition in a file, or changes it and writes the result to a file.
func (f *nvsFlags) nvs(stdout, stderr io.Writer) error {
	if f.ota != "" {
		if err := checkOTA(f.ota); err != nil {
			return err
		}
		f.set = append(f.set, "wifi/ota_url="+f.ota)
	}
	if f.writes() && f.out == "" {
		f.out = f.file
	}
	p, size, err := f.load()
	if err != nil {
		return err
	}
	notes := stdout
	if f.json {
		notes = stderr
	}
	for _, d := range p.Damaged() {
		fmt.Fprintln(notes, "damaged:", plain.Text(d))
	}
	if !f.writes() {
		return f.print(stdout, p)
	}
	if n := len(p.Damaged()); n > 0 && !f.drop {
		return fmt.Errorf("%d entries are damaged and would be lost; a robot would drop them, too; to drop them, add --drop-damaged", n)
	}
	if err := f.change(p); err != nil {
		return err
	}
	image, err := p.Encode(size)
	if err != nil {
		return err
	}
	if err := replaceFile(f.out, image, 0o600); err != nil { // the partition contains passwords
		return fmt.Errorf("write the partition: %w", err)
	}
	if f.json {
		return command.WriteJSON(stdout, map[string]any{"file": f.out, "items": len(p.Items()), "bytes": size})
	}
	fmt.Fprintf(stdout, "wrote %s: %d items in %d bytes\n", f.out, len(p.Items()), size)
	return nil
}

// writes reports whether the command writes a partition.
func (f *nvsFlags) writes() bool { return f.create || f.out != "" || len(f.set)+len(f.remove) > 0 }

// checkOTA returns a usage error for a URL that the firmware cannot use, or would parse wrongly.
func checkOTA(url string) error {
	scheme, rest, _ := strings.Cut(url, "://")
	if host, _, _ := strings.Cut(rest, "/"); scheme != "http" && scheme != "https" || host == "" ||
		strings.ContainsAny(host, "@[]") || strings.ContainsAny(url, "?# ") || len(url) > 255 {
		return command.Usagef("the robot cannot use --ota %q; it needs a URL such as http://perch.local:8003/xiaozhi/ota/", url)
	}
	return nil
}

// load returns the partition to print or change, and its size in bytes.
func (f *nvsFlags) load() (*nvs.Partition, int, error) {
	if f.create {
		if _, err := os.Lstat(f.out); err == nil {
			return nil, 0, fmt.Errorf("%s already exists; --new does not replace a robot's settings", f.out)
		}
		return &nvs.Partition{}, f.size, nil
	}
	image, err := readUpTo(f.file, nvs.MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; --new creates one", err)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the partition: %w", err)
	}
	p, err := nvs.Decode(image)
	return p, len(image), err
}

// change applies --set and --delete to the partition. (The method nvs has turned --ota into a --set.)
func (f *nvsFlags) change(p *nvs.Partition) error {
	for _, text := range f.set {
		if err := assign(p, text); err != nil {
			return err
		}
	}
	for _, text := range f.remove {
		namespace, key, _ := strings.Cut(text, "/")
		if !p.Delete(namespace, key) {
			return fmt.Errorf("there is no %s to delete", text)
		}
	}
	return nil
}

// assign carries out one --set. The value must have the type that the firmware expects for the
// key, because the firmware does not find a value of another type.
func assign(p *nvs.Partition, text string) error {
	name, value, ok := strings.Cut(text, "=")
	namespace, key, hasNamespace := strings.Cut(name, "/")
	if !ok || !hasNamespace {
		return command.Usagef("--set %q is not NAMESPACE/KEY=VALUE", text)
	}
	want, isKnown := firmwareType(namespace, key)
	if old, ok := p.Get(namespace, key); !isKnown && ok {
		want, isKnown = old.Type, true
	}
	if word, rest, hasType := strings.Cut(value, ":"); hasType {
		if t, isType := nvs.ParseType(word); isType {
			if isKnown && t != want {
				return command.Usagef("%s is a %v; the firmware would not find a %v", name, want, t)
			}
			want, isKnown, value = t, true, rest
		}
	}
	if !isKnown {
		return command.Usagef("the type of %s is unknown; specify it, as in %s=string:%s", name, name, value)
	}
	v, err := nvs.ParseValue(want, value)
	if err != nil {
		return command.Usagef("%s: %w", name, err)
	}
	return p.Set(namespace, key, v)
}

// firmwareType returns the type that the firmware expects for a key, or false if the key is
// unknown.
func firmwareType(namespace, key string) (nvs.Type, bool) {
	if base := strings.TrimRight(key, "0123456789"); namespace == "wifi" && (base == "ssid" || base == "password") {
		return nvs.String, true // the firmware stores up to ten networks, and numbers the keys
	}
	t, ok := map[string]nvs.Type{
		"wifi/ota_url": nvs.String, "wifi/max_tx_power": nvs.I8, "wifi/remember_bssid": nvs.U8, "wifi/sleep_mode": nvs.U8,
		"board/uuid":    nvs.String,
		"websocket/url": nvs.String, "websocket/token": nvs.String, "websocket/version": nvs.I32,
		"mqtt/endpoint": nvs.String, "mqtt/client_id": nvs.String, "mqtt/username": nvs.String, "mqtt/password": nvs.String,
		"mqtt/publish_topic": nvs.String, "mqtt/keepalive": nvs.I32,
		"assets/download_url": nvs.String, "audio/output_volume": nvs.I32, "app_config/is_configed": nvs.U8,
	}[namespace+"/"+key]
	return t, ok
}

// jsonItem is the JSON output about an item.
type jsonItem struct {
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
	Type      string `json:"type"`
	Value     string `json:"value"` // strings as they are, numbers in decimal, blobs in hexadecimal
}

// print prints all items. It hides secrets unless --show-secrets is set.
func (f *nvsFlags) print(w io.Writer, p *nvs.Partition) error {
	items := []jsonItem{}
	for _, i := range p.Items() {
		value := i.Value.String()
		secret := strings.HasPrefix(i.Key, "password") || strings.Contains(i.Key, "token") || strings.Contains(i.Key, "secret")
		if secret && value != "" && !f.secrets {
			value = "(hidden)"
		}
		items = append(items, jsonItem{i.Namespace, i.Key, i.Value.Type.String(), value})
	}
	if f.json {
		return command.WriteJSON(w, items)
	}
	for _, i := range items {
		if _, err := fmt.Fprintf(w, "%s/%s=%s:%s\n", plain.Text(i.Namespace), plain.Text(i.Key), i.Type, plain.Text(i.Value)); err != nil {
			return err
		}
	}
	return nil
}
