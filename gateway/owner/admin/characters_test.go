package admin_test

import (
	"perch/device"
	"perch/gateway/owner/admin"
)

// oneCharacter is a fake characters with the default character only.
type oneCharacter struct{}

func (oneCharacter) List() []admin.Character { return []admin.Character{{ID: "default"}} }

func (oneCharacter) Import(id string, _ []byte) (admin.Character, error) {
	return admin.Character{ID: id}, nil
}

func (oneCharacter) Card(string) (admin.Card, error) { return admin.Card{}, nil }
func (oneCharacter) Remove(string) error             { return nil }
func (oneCharacter) Export(string) ([]byte, error)   { return []byte("{}"), nil }

func (oneCharacter) Who(device.ID, string) string { return "default" }
