package config

import (
	"perch/agent/skill"
)

// Skills is which skills the characters have.
type Skills struct {
	Trust string   `yaml:"trust"`
	Allow []string `yaml:"allow"`
	Dir   string   `yaml:"dir"`
}

func (k *checker) skills(c *Config) {
	k.chosen("skills.trust", []string{skill.OwnedOnly, skill.Whitelist, skill.Any})
	_, err := skill.ParseTrust(c.Skills.Trust, c.Skills.Allow)
	k.failed("skills", err)
}
