package engines

import (
	"errors"

	"perch/agent/reflex"
	"perch/agent/skill"
)

// teachSkills adds the sentences of skills to a book. Its error joins the reasons for the sentences
// that it leaves out.
func teachSkills(book *reflex.Book, skills *skill.Library) error {
	if skills == nil {
		return nil
	}
	var faults []error
	for _, s := range skills.All() {
		faults = append(faults, TeachSkill(book, s))
	}
	return errors.Join(faults...)
}

// TeachSkill adds those of one.
func TeachSkill(book *reflex.Book, s skill.Skill) error {
	return book.AddSkill(s.Name, s.SentencesIn(book.Language()))
}
