package engines

import (
	"errors"

	"perch/agent/reflex"
	"perch/agent/skill"
)

// prepare gives a book the set's words and adds the sentences of skills, which may be nil. Its error
// joins the reasons for the sentences that it leaves out.
func (e *Set) prepare(book *reflex.Book, skills *skill.Library) error {
	book.Share(e.words)
	if skills == nil {
		return nil
	}
	var faults []error
	for _, s := range skills.All() {
		faults = append(faults, TeachSkill(book, s))
	}
	return errors.Join(faults...)
}

// TeachSkill adds the sentences of a skill to a book.
func TeachSkill(book *reflex.Book, s skill.Skill) error {
	return book.AddSkill(s.Name, s.SentencesIn(book.Language()))
}
