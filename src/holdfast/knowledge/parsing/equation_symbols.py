"""Signs of equations and their names in LaTeX."""

# ruff: noqa: RUF001  (the signs of mathematics are the subject)


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


# Letters and operators, each with its command.
COMMANDS = _pairs("""
    α alpha β beta γ gamma δ delta ε varepsilon ζ zeta η eta θ theta ι iota κ kappa λ lambda μ mu ν nu ξ xi π pi ρ
    rho σ sigma τ tau υ upsilon φ varphi χ chi ψ psi ω omega Γ Gamma Δ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ
    Upsilon Φ Phi Ψ Psi Ω Omega ϵ epsilon ϑ vartheta ϕ phi ϖ varpi ϱ varrho ∞ infty × times ÷ div ± pm ∓ mp · cdot
    ⋅ cdot ∙ cdot ∗ ast ∘ circ ≤ leq ≥ geq ≠ neq ≈ approx ≅ cong ≡ equiv ∼ sim ≃ simeq ∝ propto ≪ ll ≫ gg ∈ in ∉
    notin ∋ ni ⊂ subset ⊆ subseteq ⊃ supset ⊇ supseteq ∪ cup ∩ cap ∅ emptyset ∖ setminus ∧ wedge ∨ vee ¬ neg ∀
    forall ∃ exists ∄ nexists ⊢ vdash ⊨ models ⊥ perp ∥ parallel ∠ angle → rightarrow ← leftarrow ↔ leftrightarrow
    ⇒ Rightarrow ⇐ Leftarrow ⇔ Leftrightarrow ↦ mapsto ↑ uparrow ↓ downarrow ∂ partial ∇ nabla ∑ sum ∏ prod ∐
    coprod ∫ int ∬ iint ∭ iiint ∮ oint ∯ oiint ∰ oiiint ⋃ bigcup ⋂ bigcap ⋀ bigwedge ⋁ bigvee ⨁ bigoplus ⨂
    bigotimes ⊕ oplus ⊗ otimes ⊙ odot √ surd ℏ hbar ℓ ell ℜ Re ℑ Im ℵ aleph ℘ wp … ldots ⋯ cdots ⋮ vdots ⋱ ddots ′
    prime † dagger ‡ ddagger △ triangle ⌈ lceil ⌉ rceil ⌊ lfloor ⌋ rfloor ⟨ langle ⟩ rangle 〈 langle 〉 rangle ‖
    Vert ∣ mid ∎ blacksquare ° degree ∴ therefore ∵ because
""")

# Other signs, as they are written in LaTeX: spaces that Word uses for layout are left out.
PLAIN = {
    "−": "-",
    "–": "-",
    "—": "-",
    "\u00a0": " ",
    **dict.fromkeys("\u200b\u2061\u2062\u2063\u2064", ""),
    **{sign: f"\\{sign}" for sign in "{}%#$"},
}

# Marks above or below a letter; most are combining characters.
ACCENTS = {
    "\u0300": "grave",
    "\u0301": "acute",
    "\u0302": "hat",
    "\u0303": "tilde",
    "\u0304": "bar",
    "\u0305": "overline",
    "\u0306": "breve",
    "\u0307": "dot",
    "\u0308": "ddot",
    "\u030a": "mathring",
    "\u030c": "check",
    "\u0332": "underline",
    "\u20d7": "vec",
    "\u20db": "dddot",
    **_pairs("^ hat ~ tilde ¯ bar ‾ overline → vec"),
}
GROUPS = _pairs("⏞ overbrace ⏟ underbrace ︷ overbrace ︸ underbrace ⏜ overparen ⏝ underparen")
FUNCTIONS = frozenset(
    """
    arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log max min
    Pr sec sin sinh sup tan tanh
    """.split()  # noqa: SIM905  a list of 31 lines says no more
)
